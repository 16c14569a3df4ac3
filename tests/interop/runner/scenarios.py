"""Which client runs which scenarios, and which broker each scenario needs.

A scenario is `group/case`. The group names the broker profile it talks to (PROFILE, else "main").
To add one: put its name here and a function of that name into the client's program; a client that
does not know a name it was given reports a failure, so a forgotten one cannot pass.
"""

from . import topics

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

# What a Service Bus SDK does with a queue, through its public interface alone. No stable SDK has an
# interface for deleting messages in batches; the raw client covers it (wire/batch-delete).
QUEUES = [
    "queue/send-receive-complete", "queue/batch", "queue/receive-and-delete", "queue/abandon",
    "queue/abandon-properties", "queue/defer", "queue/dead-letter", "queue/dead-letter-properties",
    "queue/schedule", "queue/cancel-scheduled", "queue/schedule-by-annotation", "queue/peek", "queue/renew-lock",
    "queue/lock-lost", "queue/max-delivery", "queue/ttl-dead-letter", "queue/duplicates", "queue/large-message",
    "queue/too-large", "queue/properties-round-trip", "queue/body-kinds", "queue/empty-receive", "queue/forward",
    "queue/forward-dead-letters",
]
SESSIONS = [
    "session/accept-named", "session/accept-next", "session/accept-next-time-out", "session/order", "session/state",
    "session/renew", "session/locked-by-another", "session/deferral", "session/dead-letter",
    "session/missing-id-refused",
]
# Its settlement calls take no properties.
PYTHON_QUEUES = [s for s in QUEUES if s not in ("queue/abandon-properties", "queue/dead-letter-properties")]

# What a Service Bus SDK does with a queue of sixteen partitions: what can be told from a plain one, and what must not.
PARTITIONS = [
    "partition/send-receive", "partition/keyed-order", "partition/batch", "partition/mixed-batch",
    "partition/receive-and-delete", "partition/settle", "partition/peek", "partition/schedule", "partition/defer",
    "partition/renew-lock", "partition/duplicates", "partition/empty-receive", "partition/forward",
    "partition-session/accept-named", "partition-session/accept-next", "partition-session/state",
]

# What a plain AMQP client does with a queue: links, credit, outcomes, nothing of Microsoft's.
PLAIN_QUEUES = [
    "plain-queue/send-receive", "plain-queue/pre-settled", "plain-queue/accept", "plain-queue/release",
    "plain-queue/modify", "plain-queue/reject", "plain-queue/credit", "plain-queue/drain", "plain-queue/dlq-address",
]

# Transactions over two queues in different stores. The SDKs for JavaScript, Python and Go have none.
SDK_TRANSACTIONS = [
    "transaction/commit", "transaction/rollback", "transaction/settle", "transaction/cross-entity",
    "transaction/cross-entity-rollback", "transaction/schedule", "transaction/lock-lost",
]
PLAIN_TRANSACTIONS = ["transaction/move", "transaction/rollback"]

# What a Service Bus SDK does with a topic and its subscriptions.
TOPICS = [
    "topic/publish", "topic/batch", "topic/settle", "topic/receive-and-delete", "topic/dead-letter", "topic/session",
    "topic/defer", "topic/peek", "topic/schedule", "topic/cancel-scheduled", "topic/duplicates", "topic/sql-filter",
    "topic/correlation-filter", "topic/true-false-filter", "topic/nobody", "topic/action", "topic/filter-error",
    "topic/ttl", "topic/stream", "topic/forward-to-queue", "topic/forward-from-queue", "topic/wrong-direction",
    "topic/letter-case", "exchange/sdk",
]
# What an SDK with a rule manager on AMQP does; the others administer rules over HTTP.
RULES = [
    "rule/add-enumerate", "rule/configured", "rule/default-removed", "rule/remove", "rule/duplicate-name",
    "rule/bad-sql", "rule/later-messages-only", "rule/action",
    "rule/while-publishing",
]
# What a plain AMQP client does with exchanges, and with a topic.
EXCHANGES = [
    "exchange/direct", "exchange/topic", "exchange/fanout", "exchange/headers-all", "exchange/headers-any",
    "exchange/key-in-address", "exchange/exchanges-address", "exchange/annotations", "exchange/unroutable-accept",
    "exchange/unroutable-release", "exchange/prefetch", "exchange/queues-address", "exchange/dead-letter",
    "exchange/alternate", "topic/publish",
]

# What the administration client of every SDK does over HTTPS. `admin-restart` is last: it stops the broker.
ADMIN = [
    "admin/namespace", "admin/queue", "admin/queue-update", "admin/topic", "admin/subscription", "admin/rules",
    "admin/list", "admin/runtime", "admin/partitioned", "admin/forward", "admin/used", "admin/deleted-link",
    "admin/disabled", "admin/wrong-key", "admin/missing", "admin/exchange", "admin/methods", "admin/access-rules",
    "admin/key-rotation", "admin/counts", "admin/transfer-counts", "admin/forward-subscription", "admin/forward-rights",
    "admin/bearer", "admin-restart/kept",
]

# Where there is an asynchronous client too.
ASYNC_ADMIN = ["admin/async-methods"]

# Messages over plain HTTP, crossed with an SDK, and the clock that tests may move.
REST = [
    "rest/send", "rest/receive", "rest/batch", "rest/receive-and-delete", "rest/partitioned", "rest/gone",
    "rest/rights", "clock/lock",
]
# A namespace of its own, chosen by its host name, with the data and the administration client.
NAMESPACES = ["namespace/own"]

CLIENTS = {
    "js": SDK + QUEUES + SESSIONS + TOPICS + RULES + PARTITIONS + ADMIN + NAMESPACES,
    # Only this version and Go list sessions.
    "python": SDK + ["connect-websocket/ws"] + PYTHON_QUEUES + SESSIONS + ["session/list"] + TOPICS + PARTITIONS
    + ASYNC_ADMIN + ADMIN + ["admin/forward-headers"] + REST + NAMESPACES,
    "python-7.14": SDK + ["connect-websocket/ws"] + PYTHON_QUEUES + SESSIONS + TOPICS + PARTITIONS
    + ASYNC_ADMIN + ADMIN,
    "go": SDK + ["connect-websocket/ws", "plain/right-key", "plain/wrong-key", "idle/keep-alive"]
    + QUEUES + SESSIONS + ["session/list"] + TOPICS + ["topic/crowd"]
    + [s for s in PARTITIONS if s not in ("partition/settle", "partition/forward")] + ADMIN,
    # The Java SDK takes a refused certificate for a passing trouble and reports only its own time-out.
    "java": [s for s in SDK if s != "connect-tls/untrusted"] + QUEUES + SESSIONS + TOPICS + RULES + [
        "partition/send-receive", "partition/keyed-order", "partition/peek", "partition/schedule", "partition/defer",
        "partition-session/accept-named", "partition-session/accept-next"] + SDK_TRANSACTIONS + ASYNC_ADMIN + ADMIN,
    # It starts the broker itself, as people start the emulator.
    "emulator": ["emulator/default-ports", "emulator/sample-config"],
    "rhea": PLAIN + CBS + ["plain/tls", "plain/websocket", "no-sasl/attach-refused", "no-sasl/cbs",
                           "external/client-certificate", "idle/keep-alive", "reconnect/restart"]
    + PLAIN_QUEUES + EXCHANGES + PLAIN_TRANSACTIONS + ["transaction/unknown-id"],
    "proton-python": PLAIN + CBS + ["plain/tls", "external/client-certificate", "idle/keep-alive",
                                    "reconnect/restart"] + PLAIN_QUEUES + EXCHANGES + PLAIN_TRANSACTIONS,
    "proton-cpp": PLAIN + ["plain/tls", "idle/keep-alive", "reconnect/restart"] + PLAIN_QUEUES + EXCHANGES
    + PLAIN_TRANSACTIONS,
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
        "wire/attach-sender", "wire/send-accepted", "wire/send-rejected", "wire/unknown-format", "wire/batch",
        "wire/aborted-transfer", "wire/delivery", "wire/fragmented-delivery", "wire/sections-added",
        "wire/bytes-preserved", "wire/lock-token", "wire/receive-and-delete", "wire/settle-modes-echoed",
        "wire/outcome-echoed", "wire/settled-twice", "wire/disposition-range", "wire/drain", "wire/credit-lowered",
        "wire/echo-flow", "wire/dlq-not-writable", "wire/session-needs-filter", "wire/filter-needs-session",
        "wire/management-envelope", "wire/management-errors", "wire/peek", "wire/schedule", "wire/by-sequence-number",
        "wire/renew-lock", "wire/update-disposition", "wire/batch-delete", "wire/session-filter-plain",
        "wire/session-filter-described", "wire/session-state", "wire/session-waits", "wire/session-time-out",
        "wire/no-attach-after-detach", "wire/session-freed-by-detach", "wire/message-sessions",
        "topic/refusals", "topic/attach", "topic/delivery", "topic/letter-case", "topic/session-filter",
        "topic/management", "topic/schedule", "topic/status", "topic/disabled", "topic/evaluation",
        "topic/max-delivery", "topic/forward-dead-letters", "topic/chain", "topic/shorter-life", "topic/rights",
        "topic/session-by-action", "topic/sends", "topic/fragmented-delivery", "topic/restart",
        "rule/add", "rule/remove", "rule/enumerate", "rule/configured", "rule/pages", "rule/errors", "rule/where",
        "rule/later-messages-only", "rule/vectors", "rule/types", "rule/system-properties", "rule/rewritten",
        "rule/ids", "rule/many",
        "exchange/refusals", "exchange/delivery", "exchange/long-key", "exchange/batch", "exchange/bytes-preserved",
        "exchange/prefetch", "exchange/prefetch-size", "exchange/patterns", "exchange/header-types",
        "exchange/session", "exchange/forward", "exchange/sends", "exchange/schedule", "exchange/restart",
        "exchange/alternate-batch", "exchange/alternate-by-itself", "exchange/alternate-duplicates",
        "exchange/alternate-ends", "exchange/alternate-closed",
        "transaction/coordinator", "transaction/control-errors", "transaction/commit", "transaction/rollback",
        "transaction/unknown-id", "transaction/limit", "transaction/settle", "transaction/commit-fails",
        "transaction/sessions", "transaction/controller-gone", "transaction/connection-lost",
        "transaction/management", "transaction/partition-keys", "transaction/via", "transaction/restart",
        "namespace/host-in-sasl", "namespace/host-in-open", "namespace/host-in-tls",
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
    "queue": "queues",
    "session": "queues",
    "partition": "queues",
    "partition-session": "queues",
    "plain-queue": "queues",
    "wire": "queues",
    "topic": "queues",
    "rule": "queues",
    "exchange": "queues",
    "transaction": "queues",
    "admin": "admin",
    "admin/bearer": "jwt",
    "admin/forward-headers": "jwt",
    "admin/transfer-counts": "counts",
    "admin-restart": "admin",
    "rest": "queues",
    "clock": "clock",
    "namespace": "namespaces",
    "emulator": None,
}

# Scenarios with queues get their own: queue_of gives its name, SHAPES its settings where the defaults of
# Config.json (lock 1 minute, 3 deliveries, an hour to live) will not do. Those of the groups topic, rule and
# exchange get a topic or an exchange of that name instead, by its shape in topics.py.
# The SDKs mostly wait, and their scenarios with queues disturb nobody: these clients run several at a time.
PATIENT = ["js", "python", "python-7.14", "go", "java"]
LOCK_SECONDS = 5  # the shortest there is
SHAPES = {
    "queue/abandon": {"MaxDeliveryCount": 10},
    "queue/renew-lock": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "queue/lock-lost": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "queue/max-delivery": {"MaxDeliveryCount": 2},
    "queue/ttl-dead-letter": {"DefaultMessageTimeToLive": "PT1S", "DeadLetteringOnMessageExpiration": True},
    "queue/duplicates": {"RequiresDuplicateDetection": True, "DuplicateDetectionHistoryTimeWindow": "PT1M"},
    "queue/forward": {"ForwardTo": "{to}"},
    "queue/forward-dead-letters": {"ForwardDeadLetteredMessagesTo": "{to}"},
    "session/renew": {"RequiresSession": True, "LockDuration": f"PT{LOCK_SECONDS}S"},
    "session": {"RequiresSession": True},
    "partition": {"EnablePartitioning": True},
    "partition/duplicates": {"EnablePartitioning": True, "RequiresDuplicateDetection": True,
                             "DuplicateDetectionHistoryTimeWindow": "PT1M"},
    "partition/forward": {"EnablePartitioning": True, "ForwardTo": "{to}"},
    "rest/partitioned": {"EnablePartitioning": True},
    "partition-session": {"EnablePartitioning": True, "RequiresSession": True},
    "transaction/rollback": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "transaction/cross-entity-rollback": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "transaction/lock-lost": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "transaction/commit-fails": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "transaction/partition-keys": {"EnablePartitioning": True},
    "plain-queue/modify": {"MaxDeliveryCount": 10},
    "wire/bytes-preserved": {"DefaultMessageTimeToLive": "P10675199DT2H48M5.4775807S"},  # no expiry to write into it
    "wire/renew-lock": {"LockDuration": f"PT{LOCK_SECONDS}S"},
    "wire/session-needs-filter": {"RequiresSession": True},
    "wire/session-filter-plain": {"RequiresSession": True},
    "wire/session-filter-described": {"RequiresSession": True},
    "wire/session-state": {"RequiresSession": True},
    "wire/session-waits": {"RequiresSession": True},
    "wire/session-time-out": {"RequiresSession": True},
    "wire/no-attach-after-detach": {"RequiresSession": True},
    "wire/session-freed-by-detach": {"RequiresSession": True},
    "wire/message-sessions": {"RequiresSession": True},
}


# What the broker of the profile "counts" holds; see counted.py. The counts: active, of which one is deferred, dead
# letters, scheduled, transfers, transfer dead letters.
COUNTED, COUNTS = "counted", [2, 3, 4, 5, 6]
COUNTED_FULL, COUNTED_SESSIONS = "counted-full", "counted-sessions"
COUNTED_ENTITIES = {"Topics": [], "Queues": [
    {"Name": COUNTED, "Properties": {}},
    {"Name": COUNTED_FULL, "Properties": {"MaxMessageSizeInKilobytes": 102400}},
    {"Name": COUNTED_SESSIONS, "Properties": {"RequiresSession": True}}]}


def queue_of(client, scenario):
    """The name of the scenario's queue, topic or exchange."""
    return f"{client}-{scenario.replace('/', '-')}"


def destination_of(client, scenario):
    """The queue to which the scenario's queue or subscription forwards, if it does."""
    return queue_of(client, scenario) + "-to"


STORES = 2  # of the broker with the queues


def _store_of(name):
    """Where the broker puts a new entity: FNV-1a of its name."""
    value = 0xcbf29ce484222325
    for byte in name.lower().encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value % STORES


def partner_of(client, scenario):
    """A second queue of the scenario, in another store than the first."""
    name = queue_of(client, scenario)
    return next(f"{name}-{n}" for n in range(100) if _store_of(f"{name}-{n}") != _store_of(name))


def has_partner(scenario):
    return scenario.startswith("transaction/")


def source_of(client, scenario):
    """The queue that forwards to the scenario's topic, if one does."""
    return queue_of(client, scenario) + "-from"


def _shape(scenario):
    if topics.is_topic(scenario) or topics.is_exchange(scenario):
        return topics.shape(scenario)
    return SHAPES.get(scenario) or SHAPES.get(scenario.split("/")[0]) or {}


def forwards(scenario):
    return topics.mentions(_shape(scenario), "{to}")


def with_queues(client):
    return [s for s in CLIENTS[client] if profile(s) == "queues"]


def config_entities():
    """`Queues`, `Topics` and `Exchanges` of Config.json for the profile "queues"."""
    entities = {"Queues": [], "Topics": [], "Exchanges": []}
    for client in CLIENTS:
        for scenario in with_queues(client):
            name, to = queue_of(client, scenario), destination_of(client, scenario)
            shape = topics.replaced(_shape(scenario), "{to}", to)
            if forwards(scenario):
                entities["Queues"].append({"Name": to, "Properties": {}})
            if has_partner(scenario):
                entities["Queues"].append({"Name": partner_of(client, scenario), "Properties": {}})
            if topics.is_topic(scenario):
                entities["Topics"].append({"Name": name, **shape})
            elif topics.is_exchange(scenario):
                more, leads_on = topics.alternates_of(scenario, name)
                entities["Exchanges"] += [{"Name": name, **shape, **leads_on}, *more]
            else:
                entities["Queues"].append({"Name": name, "Properties": shape})
            if scenario in topics.SOURCES:
                source = source_of(client, scenario)
                entities["Queues"].append({"Name": source, "Properties": {"ForwardTo": name}})
    return entities


def profile(scenario):
    """None: it needs no broker of the runner's."""
    return PROFILE.get(scenario, PROFILE.get(scenario.split("/")[0], "main"))
