"""The topics and exchanges of scenarios: what Config.json says about each.

A shape is written as Config.json has it, without the name. "{to}" stands for the queue of the scenario's own
that it forwards to. A scenario of the groups below that has no shape gets a topic with two subscriptions.
"""

TOPIC_GROUPS = ("topic", "rule")
EXCHANGE_GROUPS = ("exchange",)


def sql(name, expression, action=None):
    rule = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": expression}}
    if action is not None:
        rule["Action"] = {"SqlExpression": action}
    return {"Name": name, "Properties": rule}


def correlation(name, **fields):
    return {"Name": name, "Properties": {"FilterType": "Correlation", "CorrelationFilter": fields}}


def subscription(name, *rules, **properties):
    """Without rules it has the default one."""
    given = {"Name": name, "Properties": properties}
    return {**given, "Rules": list(rules)} if rules else given


def topic(*subscriptions, **properties):
    return {"Properties": properties, "Subscriptions": list(subscriptions)}


def exchange(kind, *subscriptions, **more):
    return {"Type": kind, "Subscriptions": list(subscriptions), **more}


def bound(name, key=None, headers=None, **more):
    binding = {} if key is None else {"RoutingKey": key}
    if headers is not None:
        binding = {"RoutingHeaders": {"Headers": headers}}
    return {"Name": name, **binding, **more}


TOPIC = topic(subscription("a"), subscription("b"))
TOPICS = {
    "topic/settle": topic(subscription("a", MaxDeliveryCount=10)),
    "topic/session": topic(subscription("s", RequiresSession=True), subscription("p")),
    "topic/duplicates": topic(subscription("a"), subscription("b"), RequiresDuplicateDetection=True,
                              DuplicateDetectionHistoryTimeWindow="PT1M"),
    "topic/sql-filter": topic(
        subscription("red", sql("r", "color = 'red'")),
        subscription("large", sql("r", "quantity > 10 AND sys.Label LIKE 'ord%'")),
        subscription("colorless", sql("r", "color IS NULL")),
        subscription("either", sql("r1", "quantity IN (1, 50)"), sql("r2", "NOT color = 'red'"))),
    "topic/correlation-filter": topic(
        subscription("label", correlation("r", Label="order")),
        subscription("two-fields", correlation("r", CorrelationId="c-1", Properties={"region": "eu"})),
        subscription("number", correlation("r", Properties={"n": 2})),
        subscription("identity", correlation("r", MessageId="m-1", To="there", ReplyTo="back", ContentType="text/x"))),
    "topic/true-false-filter": topic(
        subscription("yes", sql("r", "1=1")), subscription("no", sql("r", "1=0")),
        subscription("both", sql("r1", "1=1"), sql("r2", "1=0"), sql("r3", "wanted = 'yes'"))),
    "topic/nobody": topic(subscription("no", sql("r", "1=0"))),
    "topic/action": topic(
        subscription("plain"),
        subscription("changed", sql("change", "color = 'red'",
                                    "SET quantity = quantity * 2; REMOVE color; SET added = 'by rule'; "
                                    "SET sys.Label = 'relabelled'")),
        subscription("copies", sql("plain", "1=1"), sql("marked-2", "1=1", "SET mark = 2"),
                     sql("marked-1", "1=1", "SET mark = 1"))),
    "topic/filter-error": topic(subscription("strict", sql("division", "10 / quantity = 1")), subscription("other")),
    "topic/ttl": topic(subscription("short", DefaultMessageTimeToLive="PT1S", DeadLetteringOnMessageExpiration=True),
                       subscription("long")),
    "topic/forward-to-queue": topic(subscription("a", ForwardTo="{to}"), subscription("b")),
    "topic/letter-case": topic(subscription("Audit")),
    "topic/session-filter": topic(subscription("s", RequiresSession=True), subscription("p")),
    "topic/status": topic(subscription("open"), subscription("closed", Status="ReceiveDisabled"),
                          subscription("deaf", Status="SendDisabled")),
    "topic/evaluation": topic(
        subscription("lenient", sql("division", "10 / quantity = 1"), sql("zero", "quantity = 0"),
                     DeadLetteringOnFilterEvaluationExceptions=False),
        subscription("strict", sql("b-division", "10 / quantity = 1"), sql("c-division", "10 % quantity = 1"),
                     sql("a-all", "1=1")),
        subscription("action", sql("fails", "1=1", "SET x = 1 / quantity")), subscription("other")),
    "topic/max-delivery": topic(subscription("a", MaxDeliveryCount=2), subscription("b")),
    "topic/forward-dead-letters": topic(subscription("a", ForwardDeadLetteredMessagesTo="{to}"), subscription("b")),
    "topic/chain": topic(subscription("a", sql("mark", "1=1", "SET hop = 'a'"), ForwardTo="{to}"), subscription("b")),
    "topic/shorter-life": topic(
        subscription("a", DeadLetteringOnMessageExpiration=True),
        subscription("b", DeadLetteringOnMessageExpiration=True, DefaultMessageTimeToLive="PT2H"),
        DefaultMessageTimeToLive="PT1S"),
    "topic/crowd": topic(subscription("all"), subscription("even", sql("r", "n % 2 = 0")),
                         subscription("marked", sql("r", "n % 10 = 0", "SET marked = TRUE")),
                         subscription("one", *(sql(f"r{n}", f"sender = '{n}' AND n >= 0") for n in range(4))),
                         RequiresDuplicateDetection=True, DuplicateDetectionHistoryTimeWindow="PT5M"),
    "topic/disabled": topic(subscription("a"), Status="SendDisabled"),
    "topic/session-by-action": topic(
        subscription("s", sql("by-color", "EXISTS(color)", "SET sys.SessionId = color"),
                     sql("cleared", "NOT EXISTS(color)", "REMOVE sys.SessionId"), RequiresSession=True)),
    "topic/sends": topic(subscription("a"), subscription("none", sql("r", "1=0"))),
    "topic/restart": topic(subscription("a"), subscription("b"), subscription("c"), RequiresDuplicateDetection=True,
                           DuplicateDetectionHistoryTimeWindow="PT10M"),
    "rule/configured": topic(
        subscription("a", sql("sql", "n > 1", "SET n = 2"), sql("true", "1=1"), sql("false", "1=0"),
                     correlation("correlation", Label="l", Properties={"text": "t", "whole": 2, "half": 0.5,
                                                                       "yes": True}))),
}
# A queue that forwards to the scenario's topic.
SOURCES = ["topic/forward-from-queue", "topic/chain", "exchange/forward", "exchange/alternate-by-itself"]

# What a Topic exchange's pattern matches, and what not. (exchanges contract 2.4)
PATTERNS = [
    ("", [""], ["a"]),
    ("#", ["", "a", "a.b.c", "a..b"], []),
    ("*", ["a"], ["", "a.b", "..."]),
    ("*.*", ["a.b", ".", "a."], ["a"]),
    ("a.*", ["a."], ["a", "a.b.c"]),
    ("a.#", ["a", "a.b.c"], ["ab"]),
    ("#.a", ["a", "b.a"], ["a.b"]),
    ("a.#.b", ["a.b", "a.x.y.b"], ["a.x.y"]),
    ("*.#", ["a"], [""]),
    ("#.*", ["a.b"], [""]),
    ("#.#", [""], []),
    ("#.*.#", ["x"], [""]),
    ("*.#.*", ["a.b"], ["a"]),
    ("a.*.b", ["a..b"], ["a.b"]),
    ("a.b", ["a.b"], ["a..b", "A.b"]),
    ("*.stock.#", ["usd.stock", "eur.stock.db"], ["stock.nasdaq"]),
    ("warning.*", ["warning.something"], ["error.something"]),
    ("foo.*.baz", ["foo.bar.baz"], []),
    ("audit.events.#", ["audit.events"], ["audit.users"]),
    ("regions.na.cities.*", [], ["regions.na.cities"]),
]
TOPIC_EXCHANGE = exchange("Topic", bound("all", "#"), bound("paid", "order.*.paid"), bound("eu", "order.eu.#"))
EXCHANGES = {
    "exchange/sdk": TOPIC_EXCHANGE,
    "exchange/direct": exchange("Direct", bound("red", "red"), bound("red2", "red"), bound("blue", "blue"),
                                bound("no-key", "")),
    "exchange/topic": TOPIC_EXCHANGE,
    "exchange/fanout": exchange("Fanout", bound("a"), bound("b"), bound("c")),
    "exchange/headers-all": exchange(
        "Headers", bound("two", headers={"x-match": "all", "site": "gdansk", "severity": 1}),
        bound("present", headers={"ticket": None}), bound("flag", headers={"x-match": "all", "urgent": True})),
    "exchange/headers-any": exchange(
        "Headers", bound("any", headers={"x-match": "any", "site": "gdansk", "severity": 1}),
        bound("none", headers={"x-match": "any"})),
    "exchange/key-in-address": exchange("Direct", bound("red", "red"), bound("dotted", "eu.paid"), bound("no-key", "")),
    "exchange/exchanges-address": exchange("Direct", bound("red", "red"), bound("no-key", "")),
    "exchange/annotations": exchange("Topic", bound("all", "#")),
    "exchange/unroutable-accept": exchange("Direct", bound("red", "red")),
    "exchange/unroutable-release": exchange("Direct", bound("red", "red"), Unroutable="Release"),
    "exchange/prefetch": exchange("Fanout", bound("two", PrefetchCount=2), bound("unlimited")),
    "exchange/queues-address": exchange("Fanout", bound("a")),
    "exchange/dead-letter": exchange("Fanout", bound("a"), bound("b")),
    "exchange/refusals": exchange("Direct", bound("red", "red")),
    "exchange/delivery": exchange("Topic", bound("all", "#"), bound("b", "b.#")),
    "exchange/long-key": exchange("Topic", bound("all", "#")),
    "exchange/batch": exchange("Direct", bound("red", "red"), bound("blue", "blue")),
    "exchange/patterns": exchange("Topic", *(bound(f"p{n:02}", pattern) for n, (pattern, _, _) in enumerate(PATTERNS))),
    "exchange/header-types": exchange(
        "Headers", bound("number", headers={"h": 1}), bound("text", headers={"h": "x"}),
        bound("flag", headers={"h": True}), bound("present", headers={"h": None}), bound("everything", headers={}),
        bound("x-ignored", headers={"x-a": "1"}), bound("x-none", headers={"x-match": "any", "x-a": "1"}),
        bound("with-x", headers={"x-match": "all-with-x", "x-a": "1"}),
        bound("any-with-x", headers={"x-match": "any-with-x", "foo": None, "x-foo": None})),
    "exchange/restart": exchange("Topic", bound("eu", "eu.#"), bound("paid", "*.paid", PrefetchCount=1),
                                 Unroutable="Release"),
    "exchange/sends": exchange("Direct", bound("red", "red"), Unroutable="Release", Broker={
        "RequiresDuplicateDetection": True, "DuplicateDetectionHistoryTimeWindow": "PT1M"}),
    "exchange/schedule": exchange("Direct", bound("red", "red"), bound("blue", "blue"), bound("no-key", "")),
    "exchange/prefetch-size": exchange("Fanout", bound("a", PrefetchSize=1000)),
    "exchange/session": exchange("Fanout", bound("s", Broker={"RequiresSession": True}), bound("p")),
    "exchange/forward": exchange("Direct", bound("red", "red", Broker={"ForwardTo": "{to}"}), bound("blue", "blue")),
    "exchange/bytes-preserved": exchange("Fanout", bound("a", Broker={
        "DefaultMessageTimeToLive": "P10675199DT2H48M5.4775807S"})),
    "exchange/alternate": exchange("Direct", bound("red", "red")),
    "exchange/alternate-batch": exchange("Direct", bound("red", "red")),
    "exchange/alternate-by-itself": exchange("Direct", bound("red", "red")),
    "exchange/alternate-duplicates": exchange("Direct", bound("red", "red"), Broker={
        "RequiresDuplicateDetection": True, "DuplicateDetectionHistoryTimeWindow": "PT1M"}),
    "exchange/alternate-ends": exchange("Direct", bound("red", "red"), Unroutable="Release"),
    "exchange/alternate-closed": exchange("Direct", bound("red", "red")),
}
# Further exchanges of a scenario: `x` has the alternate `x-1`, that one `x-2`, and so on. What the last one has, if
# any, it says itself; "{first}" is the scenario's own.
TWO_MORE = [exchange("Direct", bound("blue", "blue")),
            exchange("Topic", bound("green", "green.#"), Unroutable="Release")]
ALTERNATES = {
    "exchange/alternate": TWO_MORE,
    "exchange/alternate-batch": TWO_MORE,
    "exchange/alternate-by-itself": TWO_MORE,
    "exchange/alternate-duplicates": [exchange("Direct", bound("blue", "blue"))],
    # The ninth is a step too far. It leads back to the first, where messages to it come to their end.
    "exchange/alternate-ends": [
        *(exchange("Direct", bound("s", f"step{n}"), Unroutable="Release" if n == 8 else "Accept") for n in range(1, 9)),
        exchange("Direct", bound("s", "step9"), AlternateExchange="{first}")],
    "exchange/alternate-closed": [exchange("Direct", bound("blue", "blue")),
                                  exchange("Fanout", bound("all"), Status="SendDisabled")],
}


def alternates_of(scenario, name):
    """The exchanges behind the scenario's own, and what that one has to say about them."""
    more = ALTERNATES.get(scenario, [])
    chain = [{"Name": f"{name}-{n}", **replaced(shape, "{first}", name)} for n, shape in enumerate(more, 1)]
    for before, after in zip(chain, chain[1:]):
        before["AlternateExchange"] = after["Name"]
    return chain, {"AlternateExchange": chain[0]["Name"]} if chain else {}


def shape(scenario):
    return EXCHANGES[scenario] if is_exchange(scenario) else TOPICS.get(scenario, TOPIC)


def is_topic(scenario):
    return scenario.split("/")[0] in TOPIC_GROUPS


def is_exchange(scenario):
    return scenario.split("/")[0] in EXCHANGE_GROUPS


def mentions(value, text):
    """Whether a shape has this text as a value somewhere."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return value == text or any(mentions(v, text) for v in inside)


def replaced(value, text, by):
    if isinstance(value, dict):
        return {k: replaced(v, text, by) for k, v in value.items()}
    if isinstance(value, list):
        return [replaced(v, text, by) for v in value]
    return by if value == text else value
