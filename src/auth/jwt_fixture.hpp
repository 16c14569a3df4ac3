// Tokens made by an independent implementation (PyJWT), with the public half of its keys. They are good until
// 1900000000; issuer, audience and claims are the same in all: see the tests.
#pragma once

#include <string_view>

namespace omnibus::auth::fixture {

inline constexpr std::string_view issuer = "https://issuer.test/";
inline constexpr std::string_view secret = "a shared secret of enough bytes, 40 of it";
inline constexpr std::string_view jwks =
    R"({"keys": [{"kty": "RSA", "n": "xjeAPB4mxv0k2LpBXbZhACz9m7lwIVL-EIH-TnFvS47LamDIfHhd9C6eEi-9adtqlRsIlWYLz4KF6etW84e6Vl_olGXuEkzlLKjxOAGxHMntnD8dah4YrV9hj9HfogmXbF8KysHqmb0IjxJoTgsM5avgZH8yTCfNGuonGXjLpSy7NhxD_Bkh0Y72p9YtotA-xkHIDd-8DRBXgeNn2aq_iLqlLAp4By5K6E3TU85xYPeRCDSyxtefy9THC46XlqkyOD2iP2EzpAwUKxo7xnKA5AJFfuxRJ3de9GvWhp4hNzJFpfdbyckvziwalENukiqdz7cgAXx1oMQK0HiPwbye_w", "e": "AQAB", "kid": "rsa-1", "use": "sig"}, {"kty": "EC", "crv": "P-256", "x": "wph0ad0DmGnXW4HfvmE0pI8wmoCc_0joXdMDIe2od3M", "y": "VcCaa_yVms4PLVNo3-GQqYl4S6a9-YGroH652z5H4xg", "kid": "ec-1", "use": "sig"}]})";
inline constexpr std::string_view rs256 =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xIiwidHlwIjoiSldUIn0."
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6Imh0dHBzOi8vc2VydmljZWJ1cy5henVyZS5uZXQiLCJleHAiOjE5MDAw"
    "MDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYXBwLTE3Iiwicm9sZXMiOlsiQXp1cmUgU2VydmljZSBCdXMgRGF0YSBTZW5kZXIi"
    "XX0.KNb3pFN4w7GIVThwNyQNev6YH5I22Xum-"
    "BqXDgd9sGtF1F20DQtlKL58Z5EGZ13LRQDzcU66etshQr56jSiFYHmuO3bmaGSq66Prsm8Hhdy6oYOYPYGtHT3EUUbIrcazuP0kKQ3Wh"
    "NpUYq_75yuTVBw8S3NMplST5KividGQ7wExWyPhOQHHFbmC8j0nN7s0e3qR8quAyqfYp4PVa__"
    "jsVQP8XbZjdWvfxVK5Uj4Bjhi0ryzdEqfwUGMnGJd4XWX6h6LKwdTBTKMJNap486NPhtXmZVWIXguODKPFARpP5V5Ti0_"
    "8OYIjl3znKvOJ-tvQdYiaAA6TstzAUhQKHuwWw";
inline constexpr std::string_view rs384 =
    "eyJhbGciOiJSUzM4NCIsImtpZCI6InJzYS0xIiwidHlwIjoiSldUIn0."
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6Imh0dHBzOi8vc2VydmljZWJ1cy5henVyZS5uZXQiLCJleHAiOjE5MDAw"
    "MDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYXBwLTE3Iiwicm9sZXMiOlsiQXp1cmUgU2VydmljZSBCdXMgRGF0YSBTZW5kZXIi"
    "XX0.J2YIX3x_iITcPpAT3h42lzz0akch3gB648pu4-"
    "ZL7nXv3h82xFQdCO4RnUwO57nWTAO9FHI86e7TLGIf1rYXuSMTi7kz2D62rjAdLZ6uX4MVW6Lhu7FOEDnW6yt5JCbPbTyBbcXgZ8mKfP"
    "uxvetd50jYiAY5GSIcCloLpe__AYHWsoKR8ETDSTrLNmoCiVk7FxQFl7_"
    "LJwtqYdiHf6A6Xluc8EkR8UK67Eb2l2E6mFQcS7VG1Do2gaVt6zmA0VXsMoyeSCuEAlzrmCqc7I_QKmgrtSpt22EQ_"
    "u0mIaqtarE2YaZFs7vrnF8mSKowGviCY_dQ31lwzHKelqveT4BbJw";
inline constexpr std::string_view rs512 =
    "eyJhbGciOiJSUzUxMiIsImtpZCI6InJzYS0xIiwidHlwIjoiSldUIn0."
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6Imh0dHBzOi8vc2VydmljZWJ1cy5henVyZS5uZXQiLCJleHAiOjE5MDAw"
    "MDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYXBwLTE3Iiwicm9sZXMiOlsiQXp1cmUgU2VydmljZSBCdXMgRGF0YSBTZW5kZXIi"
    "XX0.mEpIkZG59W6e1ntwe1OfyccYANq4jgsBiLkIPv3xxhmWTWr8Vdn7tLy6Lpzde4xcSBYKTKYsuM8P4FXi_"
    "0HkLaLCbQHguSfiz6kqPuLn7OKARtF9XzhZ6JYQxbMG6xT7Ttsg123NDPCEfDcNeGZK9XeGLXoZkEoJ1au_"
    "kwLnovNH2CIgoeOC5uzQ24TbQkuScQgHkngssS0EDNlzaTjZjF8sCYskgzrf_TqqNVl6ONqyXngBXPsvg-lfcbZBsu-iuQJ8fZvz_"
    "ajyTcQUAMfjWsfSZpU4nL2Fszrfg6FV5FEsD6tVscKBtH6PNENJ8ek0w3FqWb9jGuLKc-OqPhmiBg";
inline constexpr std::string_view es256 =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjLTEiLCJ0eXAiOiJKV1QifQ."
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6Imh0dHBzOi8vc2VydmljZWJ1cy5henVyZS5uZXQiLCJleHAiOjE5MDAw"
    "MDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYXBwLTE3Iiwicm9sZXMiOlsiQXp1cmUgU2VydmljZSBCdXMgRGF0YSBTZW5kZXIi"
    "XX0.119MRbfzjW1THdzYjAlrwj5UnBfd-hkcqj-fSbsTLshDtTxrXugwCT6nYeEilDmOqQcQ8puDr-lpcDKEgck6Tw";
inline constexpr std::string_view hs256 =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6Imh0dHBzOi8vc2VydmljZWJ1cy5henVyZS5uZXQiLCJleHAiOjE5MDAw"
    "MDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYXBwLTE3Iiwicm9sZXMiOlsiQXp1cmUgU2VydmljZSBCdXMgRGF0YSBTZW5kZXIi"
    "XX0.yXQkkITbIpjaUeYNwHJ-44Bw2fjPZm2F7B1m7pEhUZo";

}  // namespace omnibus::auth::fixture
