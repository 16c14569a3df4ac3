"""add-rule, remove-rule and enumerate-rules: bodies, descriptors and status codes (contract 6.12, 6.13, 0.3)."""

import struct

from peer import check_kind
from report import check
from talk import ACCEPTED, ANNOTATIONS, APPLICATION, DATA, PROPERTIES, Talk, message, now_ms, with_queue
from topic_links import peek
from transfers import rich_message
from wire.values import (NULL, Value, binary, boolean, decode_all, described, encode, int_, list_, long_, map_, string,
                         symbol, text, timestamp, uint, ulong, uuid)

DESCRIPTION, NO_ACTION, SQL_ACTION = 0x13700000004, 0x13700000005, 0x13700000006
SQL, TRUE, FALSE, CORRELATION = 0x1370000006, 0x1370000007, 0x1370000008, 0x1370000009
FIELDS = ("correlation-id", "message-id", "to", "reply-to", "label", "session-id", "reply-to-session-id",
          "content-type")
BAD, TAKEN, NOT_FOUND = "com.microsoft:argument-error", "com.microsoft:entity-already-exists", "amqp:not-found"


def double(value):
    return Value("double", struct.pack(">d", value))


def expression(sql_text):
    return map_((string("expression"), string(sql_text)))


def sql(filter_, action=None, **more):
    pairs = [(string("sql-filter"), expression(filter_))]
    if action is not None:
        pairs.append((string("sql-rule-action"), expression(action)))
    return map_(*pairs, *((string(k), v) for k, v in more.items()))


def correlation(properties=None, action=None, **fields):
    pairs = [(string(k.replace("_", "-")), v) for k, v in fields.items()]
    if properties is not None:
        pairs.append((string("properties"), map_(*((string(k), v) for k, v in properties.items()))))
    more = [] if action is None else [(string("sql-rule-action"), action)]
    return map_((string("correlation-filter"), map_(*pairs)), *more)


def add(talk, entity, name, description):
    return talk.ask(entity, "add-rule", ("rule-name", string(name)), ("rule-description", description))


def remove(talk, entity, name):
    return talk.ask(entity, "remove-rule", ("rule-name", string(name)))


def parts(value, what):
    """Descriptor and fields of a described list with a numeric descriptor."""
    check(value.kind == "described" and value.value[0].kind == "ulong" and value.value[1].kind == "list",
          f"{what} is {text(value)}")
    return value.value[0].value, value.value[1].value


def rules(talk, entity, top=1000, skip=0):
    """name -> (filter descriptor, its fields, action descriptor, its fields), in the order they came."""
    reply = talk.ask(entity, "enumerate-rules", ("top", int_(top)), ("skip", int_(skip)))
    if reply.status == 204:
        check(reply.empty, "a body with 204")
        return {}
    found = {}
    for entry in check_kind(reply.ok()["rules"], "list", "rules"):
        pairs = check_kind(entry, "map", "an entry of rules")
        check([k for k, _ in pairs] == [string("rule-description")], f"keys of an entry: {text(entry)}")
        code, fields = parts(pairs[0][1], "rule-description")
        check(code == DESCRIPTION, f"descriptor 0x{code:x}")
        check(len(fields) == 4, f"the rule has {len(fields)} fields: {fields}")
        created = check_kind(fields[3], "timestamp", "created-at")
        check(now_ms() - 3600000 < created <= now_ms() + 1000, f"created at {created}")
        name = check_kind(fields[2], "string", "name")
        check(name not in found, f"{name} is twice there")
        found[name] = (*parts(fields[0], "filter"), *parts(fields[1], "action"))
    return found


def check_sql(fields, sql_text):
    check(fields[0] == string(sql_text), f"expected {sql_text}, got {text(fields[0])}")
    check(len(fields) == 2 and fields[1] == int_(20), f"compatibility level: {fields}")


def messages(talk, entity):
    return [m.body for m in peek(talk, entity)]


@with_queue("rule/add")
def add_(talk, topic):
    a = f"{topic}/Subscriptions/a"
    check(not add(talk, a, "sql", sql("n = 1")).ok(), "the body is not empty")
    add(talk, a, "inner-name", sql("n = 2", **{"rule-name": string("inner-name")})).ok()
    add(talk, a, "null-action", map_((string("sql-filter"), expression("n = 3")),
                                     (string("sql-rule-action"), NULL))).ok()
    add(talk, a, "nulls", correlation(label=string("l"), to=NULL, session_id=NULL)).ok()
    add(talk, a, "properties", correlation({"k": long_(5)}, label=NULL)).ok()
    check(not remove(talk, a, "$Default").ok(), "the body is not empty")
    for body, subject, properties in ((b"1", None, {"n": int_(1)}), (b"2", None, {"n": uint(2)}),
                                      (b"3", None, {"n": double(3.0)}), (b"4", "l", None), (b"5", None, {"k": int_(5)}),
                                      (b"6", "L", {"n": string("1"), "k": string("5")})):
        talk.put(topic, message(body, subject=subject, properties=properties))
    check(messages(talk, a) == [b"1", b"2", b"3", b"4", b"5"], f"{messages(talk, a)}")
    check(len(messages(talk, f"{topic}/Subscriptions/b")) == 6, "the other subscription")


@with_queue("rule/remove")
def remove_(talk, topic):
    a = f"{topic}/Subscriptions/a"
    add(talk, a, "Extra", sql("1=1")).ok()
    check(not remove(talk, a, "eXTRA").ok(), "the body is not empty")
    remove(talk, a, "Extra").failed(404, NOT_FOUND)
    check(list(rules(talk, a)) == ["$Default"], f"{list(rules(talk, a))}")
    remove(talk, a, "$default").ok()
    check(rules(talk, a) == {}, "the default rule is still there")
    talk.put(topic, message(b"for nobody"))
    check(messages(talk, a) == [], "a subscription without rules got a message")


@with_queue("rule/enumerate")
def enumerate_(talk, topic):
    a = f"{topic}/Subscriptions/a"
    values = {"text": string("ż"), "whole": long_(2), "int": int_(-3), "half": double(0.5), "yes": boolean(True),
              "day": timestamp(1709164800000)}
    fields = {name.replace("-", "_"): string(f"the {name}") for name in FIELDS}
    add(talk, a, "sql", sql("color = 'żółty'", "SET n = 2")).ok()
    add(talk, a, "true", sql("1=1")).ok()
    add(talk, a, "false", sql("1=0", "REMOVE color")).ok()
    add(talk, a, "full", correlation(values, **fields)).ok()
    add(talk, a, "sparse", correlation(reply_to=string("r"))).ok()
    found = rules(talk, a)
    check(set(found) == {"$Default", "sql", "true", "false", "full", "sparse"}, f"{list(found)}")
    check(found["$Default"] == (TRUE, [], NO_ACTION, []), f"$Default: {found['$Default']}")
    check(found["true"] == (TRUE, [], NO_ACTION, []), f"true: {found['true']}")
    check(found["false"][:3] == (FALSE, [], SQL_ACTION), f"false: {found['false']}")
    check_sql(found["false"][3], "REMOVE color")
    check((found["sql"][0], found["sql"][2]) == (SQL, SQL_ACTION), f"sql: {found['sql']}")
    check_sql(found["sql"][1], "color = 'żółty'")
    check_sql(found["sql"][3], "SET n = 2")
    code, given, action, none = found["full"]
    check((code, action, none) == (CORRELATION, NO_ACTION, []), f"full: {found['full']}")
    check(len(given) == 9 and given[:8] == [string(f"the {name}") for name in FIELDS], f"full: {given}")
    check({k.value: v for k, v in check_kind(given[8], "map", "properties")} == values, f"properties: {text(given[8])}")
    check(all(k.kind == "string" for k, _ in given[8].value), "the names of the properties are no strings")
    code, given, _, _ = found["sparse"]
    check(code == CORRELATION and given == [NULL] * 3 + [string("r")] + [NULL] * 4 + [map_()], f"sparse: {given}")


@with_queue("rule/configured")
def configured(talk, topic):
    found = rules(talk, f"{topic}/Subscriptions/a")
    check(set(found) == {"sql", "true", "false", "correlation"}, f"{list(found)}")
    check((found["sql"][0], found["sql"][2]) == (SQL, SQL_ACTION), f"sql: {found['sql']}")
    check_sql(found["sql"][1], "n > 1")
    check_sql(found["sql"][3], "SET n = 2")
    check(found["true"] == (TRUE, [], NO_ACTION, []), f"true: {found['true']}")
    check(found["false"] == (FALSE, [], NO_ACTION, []), f"false: {found['false']}")
    code, given, _, _ = found["correlation"]
    check(code == CORRELATION and given[:8] == [NULL] * 4 + [string("l")] + [NULL] * 3, f"correlation: {given}")
    check({k.value: v for k, v in given[8].value} == {"text": string("t"), "whole": long_(2), "half": double(0.5),
                                                      "yes": boolean(True)}, f"properties: {text(given[8])}")


@with_queue("rule/pages")
def pages(talk, topic):
    a = f"{topic}/Subscriptions/a"
    for number in range(7):
        add(talk, a, f"r{number}", sql(f"n = {number}")).ok()
    whole = list(rules(talk, a))
    check(len(whole) == 8, f"{whole}")
    collected, page = [], None
    while page is None or page:
        page = list(rules(talk, a, top=3, skip=len(collected)))
        check(len(page) <= 3, f"a page of {len(page)}")
        collected += page
    check(collected == whole, f"in pages {collected}, at once {whole}")
    check(list(rules(talk, a, top=2147483647)) == whole, "with the largest top")
    check(talk.ask(a, "enumerate-rules", ("top", int_(10)), ("skip", int_(8))).status in (200, 204), "past the end")


@with_queue("rule/errors")
def errors(talk, topic):
    a, b = f"{topic}/Subscriptions/a", f"{topic}/Subscriptions/b"
    add(talk, a, "once", sql("n = 1")).ok()
    for name in ("once", "ONCE", "$default"):
        add(talk, a, name, sql("n = 2")).failed(409, TAKEN)
    add(talk, b, "once", sql("n = 1")).ok()  # unique in its subscription only
    whys = []
    for bad in (sql("color ="), sql("sys.Nope = 1"), sql(""), sql("n = 1" + " " * 1020),
                sql("(" * 100 + "n" + ")" * 100),
                sql("1=1", "SET sys.SequenceNumber = 1"), sql("1=1", "DELETE n"), sql("1=1", "SET n = 1;" * 33),
                sql("1=1", ""), correlation(), correlation({}), correlation(label=int_(1)),
                correlation({"list": list_(int_(1))}), map_(),
                map_(*sql("1=1").value, *correlation(label=string("l")).value),
                map_((string("sql-filter"), string("n = 1"))), map_((string("sql-filter"), map_()))):
        reply = add(talk, a, "bad", bad)
        reply.failed(400, BAD)
        whys.append(reply.properties["statusDescription"].value)
    check("Nope" in whys[1] and "SequenceNumber" in whys[5], f"they do not say what is wrong: {whys}")
    check(all(len(why) > 10 for why in whys), f"not readable: {whys}")
    for name in ("", "a/b", "x" * 51):
        add(talk, a, name, sql("1=1")).failed(400, BAD)
    talk.ask(a, "add-rule", ("rule-name", string("r"))).failed(400, BAD)
    talk.ask(a, "add-rule", ("rule-description", sql("1=1"))).failed(400, BAD)
    talk.ask(a, "add-rule", ("rule-name", int_(1)), ("rule-description", sql("1=1"))).failed(400, BAD)
    talk.ask(a, "add-rule", ("rule-name", string("r")), ("rule-description", string("1=1"))).failed(400, BAD)
    talk.ask(a, "remove-rule").failed(400, BAD)
    talk.ask(a, "enumerate-rules", ("top", string("all")), ("skip", int_(0))).failed(400, BAD)
    missing = remove(talk, a, "no-such")
    missing.failed(404, NOT_FOUND)
    why = missing.properties["statusDescription"].value
    check("The messaging entity '" in why and "' could not be found" in why, f"another text: {why}")
    check(sorted(rules(talk, a)) == ["$Default", "once"], f"{list(rules(talk, a))}")
    return " | ".join(whys)


@with_queue("rule/where")
def where(talk, topic):
    """Rules belong to subscriptions: other nodes refuse them, and live on."""
    for node in (topic, f"{topic}/Subscriptions/a/$DeadLetterQueue"):
        for reply in (add(talk, node, "r", sql("1=1")), remove(talk, node, "$Default"),
                      talk.ask(node, "enumerate-rules", ("top", int_(10)), ("skip", int_(0)))):
            check(reply.status >= 400, f"{node} answered {reply.status}")
            check_kind(reply.properties["errorCondition"], "symbol", "errorCondition")
    check(list(rules(talk, f"{topic}/Subscriptions/a")) == ["$Default"], "a rule got through")
    # Numbers may come in any width (6.3).
    reply = talk.ask(f"{topic}/Subscriptions/a", "enumerate-rules", ("skip", uint(0)), ("top", long_(10)))
    check(len(reply.ok()["rules"].value) == 1, "one rule")


@with_queue("rule/later-messages-only")
def later_messages_only(talk, topic):
    a = f"{topic}/Subscriptions/a"
    handle, receiver = talk.sender(topic), talk.receiver(a)

    def post(body, **more):
        check(talk.outcome(talk.post(handle, message(body, **more))) == ACCEPTED, "not accepted")

    post(b"before")
    add(talk, a, "action", sql("n = 1", "SET n = n + 1; SET sys.Label = 'changed'")).ok()
    remove(talk, a, "$Default").ok()
    post(b"unwanted")
    post(b"after", properties={"n": int_(1)})
    before, after = talk.take(receiver, 2)
    check((before.body, after.body) == (b"before", b"after"), f"{before.body} {after.body}")
    check(before.map(APPLICATION) == {}, "the message of before was changed")
    check(after.map(APPLICATION) == {"n": int_(2), "RuleName": string("action")}, f"{after.map(APPLICATION)}")
    check(after.sections[PROPERTIES].value[3] == string("changed"), "the subject")
    talk.settled(ACCEPTED, before)
    talk.settled(ACCEPTED, after)
    check(messages(talk, a) == [], "something is left")
    [*_, untouched] = peek(talk, f"{topic}/Subscriptions/b")
    check(untouched.map(APPLICATION) == {"n": int_(1)}, "a property of the other copy was changed")
    check(untouched.sections[PROPERTIES].value[3] == NULL, "the subject of the other copy was changed")


# Expressions for the message of `vectors`, and whether they are true of it. (sql-filter contract 12)
VECTORS = [
    ("1=1", True), ("1>1", False), ("color = 'red'", True), ("COLOR = 'red'", True), ("color = 'RED'", False),
    ("user.color='red' AND sys.Label LIKE '%bus%'", True), ("sys.label LIKE 'omni___'", True),
    ("sys.Label LIKE 'bus'", False), ("quantity / 4 = 2", True), ("quantity / 4.0 = 2.5", True),
    ("quantity % 3 = 1", True), ("-quantity < -9", True), ("quantity = '10'", False),
    ("NOT quantity = '10'", False), ("quantity IN (1, 10, 100)", True), ("price * 2 = 5", True),
    ("color NOT IN ('blue', missing)", False), ("color NOT IN ('blue', 'green')", True), ("[a b] = 1", True),
    ("\"a b\" = 1", True), ("\"http://x/y\" = 'account'", True), ("p('a b') = 1", True),
    ("property('a b') = 1", True), ("'it''s' = 'it''s'", True), ("'AB%' LIKE 'AB\\%' ESCAPE '\\'", True),
    ("'ABC' LIKE 'AB\\%' ESCAPE '\\'", False), ("sys.CorrelationId IS NULL", True), ("missing = 1", False),
    ("NOT missing = 1", False), ("missing IS NULL", True), ("color IS NOT NULL", True), ("EXISTS(missing)", False),
    ("EXISTS(color) OR 1/0 = 1", True), ("missing = 1 OR ok = TRUE", True), ("missing = 1 AND 1 = 0", False),
    ("newid() = newid()", False), ("quantity + 1 * 2 = 12", True), ("NOT color = 'red' OR quantity = 10", True),
    ("1.5E1 = 15", True), ("ok", True), ("NOT ok", False), ("color", False), ("color + '!' = 'red!'", True),
    ("sys.MessageId = '123456'", True), ("sys.EnqueuedTimeUtc IS NOT NULL", True), ("price > 2 AND price < 3", True),
    ("sys.DeliveryCount = 0", True), ("sys.Size > 0", True), ("sys.State = 'Active'", True), ("sys.To IS NULL", True),
    ("sys.LockToken IS NULL", True), ("sys.ForcePersistence = FALSE", True), ("sys.TimeToLive IS NOT NULL", True),
    ("sys.ExpiresAtUtc > sys.EnqueuedTimeUtc", True), ("sys.Subject = 'omnibus'", True),
    ("sys.Label = 'Omnibus'", False),
    ("quantity <> 10 OR price != 2.5", False), ("(quantity - 10) * 2 = 0", True), ("color > 'blue'", True),
]


@with_queue("rule/vectors")
def vectors(talk, topic):
    """Each expression is a rule with an action, so that each match makes a copy that tells the rule's name."""
    a = f"{topic}/Subscriptions/a"
    remove(talk, a, "$Default").ok()
    for number, (vector, _) in enumerate(VECTORS):
        add(talk, a, f"v{number:02}", sql(vector, "SET hit = 1")).ok()
    talk.put(topic, message(b"m", message_id="123456", subject="omnibus", properties={
        "color": string("red"), "quantity": int_(10), "price": double(2.5), "a b": int_(1), "ok": boolean(True),
        "http://x/y": string("account")}))
    hits = {m.map(APPLICATION)["RuleName"].value for m in peek(talk, a)}
    wrong = [(vector, "false" if expected else "true") for number, (vector, expected) in enumerate(VECTORS)
             if (f"v{number:02}" in hits) != expected]
    check(not wrong, f"another value than expected: {wrong}")
    check(peek(talk, f"{a}/$DeadLetterQueue") == [], "an expression failed")


@with_queue("rule/types")
def types(talk, topic):
    """What the types of AMQP are to an expression, to a correlation filter and to an action."""
    a, b = f"{topic}/Subscriptions/a", f"{topic}/Subscriptions/b"
    for address in (a, b):
        remove(talk, address, "$Default").ok()
    add(talk, a, "number", sql("p = 5", "SET p = p + 1")).ok()
    add(talk, a, "text", sql("p = '5'", "SET p = p + 1")).ok()
    add(talk, a, "flag", sql("p", "SET p = FALSE")).ok()
    add(talk, a, "equal", correlation({"p": int_(5)}, action=expression("REMOVE p"))).ok()
    widths = [Value("byte", 5), Value("short", 5), int_(5), long_(5), Value("ubyte", 5), Value("ushort", 5), uint(5),
              Value("ulong", 5), Value("float", struct.pack(">f", 5)), double(5)]
    for value in widths:
        talk.put(topic, message(b"n", properties={"p": value}))
    copies = [m.map(APPLICATION) for m in peek(talk, a)]
    check(all("RuleName" in c for c in copies), f"{copies}")
    names = [c["RuleName"].value for c in copies]
    check(names == ["equal", "number"] * 10, f"{names}")
    for value, copy in zip(widths, [c for c in copies if c["RuleName"] == string("number")]):
        check(copy["p"].kind == value.kind, f"{value.kind} became {text(copy['p'])}")  # an old property keeps its type
    check(all("p" not in c for c in copies if c["RuleName"] == string("equal")), "REMOVE p")
    add(talk, b, "text", sql("p = '5'", "SET p = p + 1")).ok()
    add(talk, b, "flag", sql("p", "SET p = FALSE")).ok()
    add(talk, b, "new", sql("p IS NULL", "SET i = 1; SET d = 1.5; SET s = 'x'; SET t = TRUE; SET n = missing")).ok()
    for value in (string("5"), symbol("5"), Value("char", ord("5")), boolean(True), NULL, binary(b"5")):
        talk.put(topic, message(b"o", properties={"p": value}))
    copies = [m.map(APPLICATION) for m in peek(talk, b)]
    check(all("RuleName" in c for c in copies), f"{copies}")
    check([c["RuleName"].value for c in copies] == ["text", "text", "text", "flag", "new"], f"{copies}")
    check(copies[0]["p"] == string("51") and copies[3]["p"] == boolean(False), f"{copies}")
    check({k: v for k, v in copies[4].items() if k in "idstn"} == {
        "i": long_(1), "d": double(1.5), "s": string("x"), "t": boolean(True), "n": NULL}, f"{copies[4]}")


@with_queue("rule/system-properties")
def system_properties(talk, topic):
    """Every system property an action may write, and what it makes of the copy."""
    a = f"{topic}/Subscriptions/a"
    writable = ("ContentType", "CorrelationId", "Label", "MessageId", "To", "ReplyTo", "ReplyToSessionId", "SessionId")
    places = {"MessageId": 0, "To": 2, "Label": 3, "ReplyTo": 4, "CorrelationId": 5, "ContentType": 6, "SessionId": 10,
              "ReplyToSessionId": 12}
    remove(talk, a, "$Default").ok()
    add(talk, a, "a-set", sql("1=1", "; ".join(f"SET sys.{name} = 'new {name}'" for name in writable))).ok()
    removed = "; ".join(f"REMOVE sys.{name}" for name in writable if name != "MessageId")
    add(talk, a, "b-removed", sql("1=1", removed)).ok()
    add(talk, a, "c-read", sql("1=1", "; ".join(f"SET {name} = sys.{name}" for name in writable))).ok()
    add(talk, a, "d-key", sql("1=1", "REMOVE sys.SessionId; SET sys.PartitionKey = 'k'")).ok()
    for name in ("SequenceNumber", "EnqueuedTimeUtc", "DeliveryCount", "LockToken", "ExpiresAtUtc", "Size", "State"):
        add(talk, a, "bad", sql("1=1", f"SET sys.{name} = 1")).failed(400, BAD)
        add(talk, a, "bad", sql("1=1", f"REMOVE sys.{name}")).failed(400, BAD)
    fields = [NULL] * 13
    for name, place in places.items():
        fields[place] = (symbol if name == "ContentType" else string)(f"old {name}")
    talk.put(topic, b"".join(encode(described(ulong(code), value)) for code, value in (
        (PROPERTIES, list_(*fields)), (DATA, binary(b"m")))))
    copies = peek(talk, a)
    check(len(copies) == 4, f"{len(copies)} copies")
    for name, place in places.items():
        values = [m.sections[PROPERTIES].value for m in copies]
        got = [v[place].value if len(v) > place else None for v in values]
        kept = f"old {name}"
        check(got[0] == f"new {name}", f"{name} was set to {got[0]}")
        check(got[1] == (kept if name == "MessageId" else None), f"{name} was removed and is {got[1]}")
        check(got[2] == kept, f"{name} is {got[2]} in the copy that only reads")
        check(copies[2].map(APPLICATION)[name] == string(kept), f"{name} reads {copies[2].map(APPLICATION)[name]}")
    check(copies[0].sections[PROPERTIES].value[6].kind == "symbol", "content-type is no symbol")
    check(copies[3].map(ANNOTATIONS)["x-opt-partition-key"] == string("k"), "the partition key")
    check([m.body for m in copies] == [b"m"] * 4, "the bodies")


@with_queue("rule/rewritten")
def rewritten(talk, topic):
    """A copy that an action changed keeps everything else, byte for byte."""
    a = f"{topic}/Subscriptions/a"
    add(talk, a, "mark", sql("1=1", "SET mark = 'x'; REMOVE uint")).ok()
    rich = rich_message()
    own = encode(described(ulong(ANNOTATIONS), map_((symbol("x-own"), list_(boolean(True), string("kept"))))))
    talk.put(topic, own + rich)
    plain, changed = talk.take(talk.receiver(a), 2)
    sent = {v.value[0].value: v.value[1] for v in decode_all(rich)}
    for one in (plain, changed):
        check(one.map(ANNOTATIONS)["x-own"] == list_(boolean(True), string("kept")), "the sender's own annotation")
        check(one.order.count(0x76) == 2, f"sections {one.order}")
        check(one.sections[0x76] == sent[0x76] and one.sections[0x78] == sent[0x78], "the body or the footer changed")
        fields, before = one.sections[PROPERTIES].value, sent[PROPERTIES].value
        check([f for n, f in enumerate(fields) if n != 8] == [f for n, f in enumerate(before) if n != 8],
              f"properties before {before}, after {fields}")  # the one at 8 is the absolute expiry time
    check(plain.sections[APPLICATION] == sent[APPLICATION], "the properties of the plain copy")
    expected = [(k, v) for k, v in sent[APPLICATION].value if k != string("uint")]
    got = changed.sections[APPLICATION].value
    check(got[:len(expected)] == expected, f"before {expected}, after {got}")
    check({k.value: v for k, v in got[len(expected):]} == {"mark": string("x"), "RuleName": string("mark")},
          f"added {got[len(expected):]}")


@with_queue("rule/ids")
def ids(talk, topic):
    """Ids that are no strings are compared as texts (sql-filter contract 6)."""
    a, identity = f"{topic}/Subscriptions/a", "00112233-4455-6677-8899-aabbccddeeff"
    remove(talk, a, "$Default").ok()
    add(talk, a, "a", correlation(message_id=string("77"), action=expression("SET x = 1"))).ok()
    add(talk, a, "b", correlation(correlation_id=string(identity), action=expression("SET x = sys.CorrelationId"))).ok()
    add(talk, a, "c", sql(f"sys.MessageId = '77' AND sys.CorrelationId = '{identity}'", "SET x = 3")).ok()
    add(talk, a, "d", sql("sys.MessageId = 77", "SET x = 4")).ok()
    fields = list_(ulong(77), NULL, NULL, NULL, NULL, uuid(identity))
    talk.put(topic, encode(described(ulong(PROPERTIES), fields)) + encode(described(ulong(DATA), binary(b"m"))))
    copies = peek(talk, a)
    names = [m.map(APPLICATION)["RuleName"].value for m in copies]
    check(names == ["a", "b", "c"], f"{names}")
    check(copies[1].map(APPLICATION)["x"] == string(identity), f"{copies[1].map(APPLICATION)}")
    for one in copies:  # reading an id does not change its type
        fields = one.sections[PROPERTIES].value
        check((fields[0], fields[5]) == (ulong(77), uuid(identity)), f"ids {fields}")


@with_queue("rule/many")
def many(talk, topic):
    """The filters of a topic are counted over all its subscriptions: 2,000 with SQL, the true filter among them."""
    a, b = f"{topic}/Subscriptions/a", f"{topic}/Subscriptions/b"
    for number in range(1000):
        add(talk, a, f"a{number}", sql(f"n = {number}")).ok()
    with Talk() as other:  # no session of ours takes more than 2048 transfers
        for number in range(998):  # two rules are there by default
            add(other, b, f"b{number}", sql("1=0")).ok()
    add(talk, a, "one too many", sql("1=1")).failed(403, "amqp:resource-limit-exceeded")
    add(talk, b, "one too many", sql("1=0")).failed(403, "amqp:resource-limit-exceeded")
    add(talk, a, "by label", correlation(label=string("l"))).ok()  # these have a limit of their own
    remove(talk, b, "b0").ok()
    add(talk, a, "room again", sql("n = 1")).ok()
    check(len(rules(talk, a, top=5000)) == 1003, f"{len(rules(talk, a, top=5000))} rules")
    remove(talk, a, "$Default").ok()
    talk.put(topic, message(b"m1", properties={"n": int_(999)}), message(b"m2", properties={"n": int_(1000)}),
             message(b"m3", subject="l"))
    check(messages(talk, a) == [b"m1", b"m3"], f"{messages(talk, a)}")
