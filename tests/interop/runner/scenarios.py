"""Which client runs which scenarios, and which broker each scenario needs.

A scenario is `group/case`. The group names the broker profile it talks to (PROFILE, else "main").
To add one: put its name here and a function of that name into the client's program; a client that
does not know a name it was given reports a failure, so a forgotten one cannot pass.
"""

# What every Service Bus SDK must do. The cases of connect-*: attaching to an entity that does not
# exist must give the SDK's own not-found error, which proves SASL, $cbs, and the refusal.
SDK = [
    "connect-tcp/sender", "connect-tcp/receiver", "connect-tcp/subscription", "connect-tcp/session",
    "connect-tls/trusted", "connect-tls/untrusted",
    "connect-websocket/wss",
    "wrong-key/key", "wrong-key/rule", "wrong-key/expired-sas", "wrong-key/other-entity", "wrong-key/malformed-sas",
    "sas-string/namespace", "sas-string/entity",
    "jwt/hs256", "jwt/rs256", "jwt/bad-signature", "jwt/expired",
    "reconnect/restart",
]

# What the plain AMQP clients do with SASL, by hand-written $cbs, and about time.
PLAIN = ["plain/right-key", "plain/wrong-key", "plain/unknown-rule", "anonymous/no-token"]
CBS = [
    "cbs/put-token", "cbs/renewal", "cbs/unknown-type", "cbs/missing-name", "cbs/bad-signature", "cbs/expired",
    "cbs/id-string", "cbs/id-ulong", "cbs/id-uuid", "cbs/two-pairs", "cbs/expiry-detaches-one-link",
]

CLIENTS = {
    "js": SDK,
    "python": SDK + ["connect-websocket/ws"],
    "python-7.14": SDK + ["connect-websocket/ws"],
    "go": SDK + ["connect-websocket/ws", "plain/right-key", "plain/wrong-key", "idle/keep-alive"],
    # The Java SDK takes a refused certificate for a passing trouble and reports only its own time-out.
    "java": [s for s in SDK if s != "connect-tls/untrusted"],
    "rhea": PLAIN + CBS + ["plain/tls", "plain/websocket", "no-sasl/attach-refused", "no-sasl/cbs",
                           "external/client-certificate", "idle/keep-alive", "reconnect/restart"],
    "proton-python": PLAIN + CBS + ["plain/tls", "external/client-certificate", "idle/keep-alive",
                                    "reconnect/restart"],
    "proton-cpp": PLAIN + ["plain/tls", "idle/keep-alive", "reconnect/restart"],
    "raw": [
        "header/sasl", "header/no-sasl", "header/tls-upgrade", "header/tls-inside-tls", "header/other-version",
        "header/other-protocol", "header/require-tls-sasl", "header/require-tls-plain",
        "sasl/mechanisms", "sasl/external-offered", "sasl/welcome", "sasl/mssbcbs", "sasl/wrong-password",
        "sasl/unknown-mechanism", "sasl/oversized-frame",
        "performatives/open", "performatives/open-small-values", "performatives/begin", "performatives/attach-cbs",
        "performatives/flow-credit", "performatives/refusal", "performatives/refusal-text",
        "performatives/detach-answered", "performatives/end-answered", "performatives/close-answered",
        "performatives/echo-flow", "cbs/response",
        "pipelined/sasl", "pipelined/everything", "pipelined/byte-by-byte",
        "address/sb-scheme", "address/absolute", "address/dynamic", "address/null-target",
        "violation/frame-too-large", "violation/frame-too-small", "violation/data-offset", "violation/decode-error",
        "violation/no-open", "violation/channel-too-high", "violation/unattached-handle", "violation/handle-in-use",
        "garbage/closes", "garbage/others-undisturbed", "garbage/tls-garbage",
        "websocket/sub-protocol", "websocket/absolute-form", "websocket/none-offered", "websocket/split-frames",
        "limit/connections",
        "idle/keep-alive", "idle/silent-client-dropped", "token/none-is-dropped",
        "shutdown/forced",
    ],
}

PROFILE = {
    "connect-tls/untrusted": "restart",  # the one broker whose CA the clients are not given
    "jwt": "jwt",
    "external": "certificates",
    "reconnect": "restart",
    "limit": "limited",
    "token": "strict",
    "shutdown": "shutdown",
    "header/require-tls-sasl": "tls",
    "header/require-tls-plain": "tls",
    "sasl/external-offered": "certificates",
    "idle/silent-client-dropped": "idle",
}


def profile(scenario):
    return PROFILE.get(scenario) or PROFILE.get(scenario.split("/")[0]) or "main"
