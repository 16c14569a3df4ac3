"""Tokens, keys and certificates for the scenarios, made with the standard library and openssl(1)."""

import base64
import hashlib
import hmac
import json
import subprocess
import time
import urllib.parse

RULE = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"
JWT_SECRET = b"interop-hs256-secret-interop-hs256-secret"
JWT_ISSUER = "https://issuer.example/"
JWT_AUDIENCE = "https://servicebus.azure.net"


def sas(resource, rule=RULE, key=KEY, seconds=3600):
    sr = urllib.parse.quote_plus(resource)
    expiry = int(time.time()) + seconds
    digest = hmac.new(key.encode(), f"{sr}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={sr}&sig={signature}&se={expiry}&skn={rule}"


def _part(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(seconds=3600, roles=("Manage", "Send", "Listen"), audience=JWT_AUDIENCE):
    now = int(time.time())
    return {"iss": JWT_ISSUER, "aud": audience, "sub": "interop", "iat": now - 10, "nbf": now - 10,
            "exp": now + seconds, "roles": list(roles)}


def jwt_hs256(body, secret=JWT_SECRET):
    text = _part({"alg": "HS256", "typ": "JWT"}) + "." + _part(body)
    return text + "." + _part(hmac.new(secret, text.encode(), hashlib.sha256).digest())


class RsaKey:
    """A fresh RSA key in `folder`, its JWKS, and JWTs signed with it."""

    def __init__(self, folder):
        self.path = folder / "jwt-rsa.pem"
        _openssl("genrsa", "-out", str(self.path), "2048")
        modulus = _openssl("rsa", "-in", str(self.path), "-noout", "-modulus").decode().strip().split("=")[1]
        self.modulus = bytes.fromhex(modulus)

    def jwks(self):
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rs", "n": _part(self.modulus),
                          "e": _part(b"\x01\x00\x01")}]}

    def jwt(self, body):
        text = _part({"alg": "RS256", "typ": "JWT", "kid": "rs"}) + "." + _part(body)
        signature = _openssl("dgst", "-sha256", "-sign", str(self.path), stdin=text.encode())
        return text + "." + _part(signature)


def client_certificate(folder, name):
    """A CA for client certificates, and one certificate of it: (ca, certificate, key) paths."""
    ca, ca_key = folder / "client-ca.pem", folder / "client-ca.key"
    cert, key, request = folder / "client.pem", folder / "client.key", folder / "client.csr"
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Interop client CA",
             "-keyout", str(ca_key), "-out", str(ca))
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", str(key),
             "-out", str(request))
    _openssl("x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-set_serial", "2",
             "-days", "2", "-out", str(cert))
    return ca, cert, key


def _openssl(*arguments, stdin=None):
    done = subprocess.run(["openssl", *arguments], input=stdin, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout
