"""The protocol guide, statement by statement, and what proves each: see table.py for the notation."""

from .table import differs, missing, part, row

row("G1", "AMQP 1.0 is the main protocol of Service Bus and Event Hubs; both are also reachable over HTTPS",
    "js queue/send-receive-complete", "js admin/queue", "python rest/send", note=part("Event Hubs are not there yet"))
row("G2", "The proprietary SBMP protocol is being retired", "raw header/other-protocol")
row("G3", "Any AMQP 1.0 stack on any platform can be a client", "proton-cpp plain-queue/send-receive",
    "proton-python plain-queue/send-receive", "rhea plain-queue/send-receive")
row("G4", "An event hub takes events like a queue and is read like a tape", note=missing("Event Hubs are not there yet"))
row("G5", "AMQP can run inside WebSockets where its own ports are blocked", "js connect-websocket/wss",
    "rhea plain/websocket")
row("G6", "Over one connection a client can receive from one queue and send to another at the same time",
    "java transaction/cross-entity")
row("G7", "The client opens the TCP connection, the service listens", "js connect-tcp/sender")
row("G8", "The handshake settles protocol version and use of TLS", "raw header/other-version", "raw header/tls-upgrade")
row("G9", "Authentication at connection level is SASL", "raw sasl/mechanisms", "raw sasl/wrong-password")
row("G10", "TLS is required always", "raw header/require-tls-sasl", "raw header/require-tls-plain",
    note=differs("plain TCP is open unless RequireTls is set: the emulator's connection string means plain TCP"))
row("G11", "Port 5671: TLS first, then AMQP", "python connect-tls/trusted", "proton-cpp plain/tls")
row("G12", "Port 5672: the server offers the upgrade to TLS in the AMQP way", "raw header/tls-upgrade")
row("G13", "The WebSocket tunnel is then the same as a 5671 connection", "python connect-websocket/wss",
    "raw websocket/split-frames")
row("G14", "PLAIN: user = name of a shared access rule, password = its key", "proton-cpp plain/right-key",
    "proton-cpp plain/wrong-key", "rhea plain/unknown-rule")
row("G15", "After PLAIN the rights of that rule decide what the connection may do", "raw topic/rights")
row("G16", "ANONYMOUS skips SASL authorization for clients that will use CBS", "rhea cbs/put-token")
row("G17", "An anonymous connection may for a short time talk to the CBS node only and must finish the handshake",
    "rhea anonymous/no-token", "raw token/none-is-dropped")
row("G18", "Each side declares the largest frame it handles", "raw performatives/open", "raw violation/frame-too-large")
row("G19", "Each side declares an idle time after which it drops a silent connection", "raw idle/silent-client-dropped",
    "rhea idle/keep-alive")
row("G20", "Each side declares how many channels it supports", "raw performatives/open", "raw violation/channel-too-high")
row("G21", "A session joins one channel of each side", "raw performatives/begin")
row("G22", "A session declares a receive window; transfers stop when it is full, until a flow reopens it",
    "unit Window.ClosesInTheMiddleOfAMessageAndOpensAgain", "unit Window.OurWindowIsReopenedAtHalf")
row("G23", "Several sessions may run beside each other on a connection", "unit Session.EveryChannelUpToTheLimitCanBeUsed")
row("G24", "The service uses exactly one session per connection", "unit Session.EveryChannelUpToTheLimitCanBeUsed",
    note=differs("many: the SDKs for JavaScript, Go, Java and .NET open one per link"))
row("G25", "Largest frame: 262,144 bytes for Standard and Event Hubs, 1,048,576 for Premium", "raw performatives/open",
    "unit Config.TheStandardFrameLimitDoesNotDependOnTheOrderOfKeys",
    note=differs("65,536 unless set higher, as the service itself answers"))
row("G26", "No throttling by session windows; the window is reset regularly along with link flow control",
    "unit Window.OurWindowIsReopenedAtHalf")
row("G27", "Connection, channels and sessions are lost with the socket and must be set up anew", "js reconnect/restart",
    "unit Close.LostTransportTellsEveryLink")
row("G28", "A link carries messages one way; the talk about their status goes both ways", "raw wire/outcome-echoed",
    "unit Disposition.PeerSaysUnsettledAndWeSettle")
row("G29", "Links can be made at any time on an existing session, by either side (we never begin one)",
    "raw wire/attach-sender")
row("G30", "The initiator chooses to be sender or receiver; two-way paths are pairs of links", "rhea cbs/two-pairs",
    "raw wire/attach-sender")
row("G31", "Links have names and are tied to nodes", "raw wire/attach-sender", "unit Attach.AnswerEchoesNameModesAndTerminus")
row("G32", "A node is a queue, topic, subscription, or the dead-letter queue of a queue or subscription",
    "proton-cpp plain-queue/dlq-address", "raw topic/attach", "js topic/dead-letter")
row("G33", "The node name is the entity's name relative to the namespace", "rhea plain-queue/send-receive",
    "raw address/sb-scheme", "raw address/absolute")
row("G34", "Subscription `sub` of `mytopic` is the node `mytopic/Subscriptions/sub`", "raw topic/attach",
    "raw topic/letter-case")
row("G35", "The client's own node names are free and not interpreted", "raw wire/attach-sender")
row("G36", "A transfer is complete when settled: both sides know its outcome", "raw wire/send-accepted",
    "raw wire/outcome-echoed", "raw wire/settled-twice")
row("G37", "Pre-settled sends are supported; the sender gets no feedback", "rhea plain-queue/pre-settled")
row("G38", "Unsettled sends are answered by a disposition that accepts or rejects", "raw wire/send-accepted",
    "raw wire/send-rejected")
row("G39", "A rejection carries an AMQP error that gives the reason", "raw wire/send-rejected", "js queue/too-large")
row("G40", "For internal errors the rejection carries extra data for support",
    "unit MessageFields.ARejectionForATroubleOfTheBrokerCanBeFoundByItsTrackingId")
row("G41", "`released`: the receiver has no objection but will not settle the message", "rhea plain-queue/release",
    "proton-python plain-queue/release")
row("G42", "`modified` is not used by Service Bus", "rhea plain-queue/modify", "js queue/abandon", "js queue/defer",
    note=differs("it is abandon and defer: all SDKs send it"))
row("G43", "`received` exists for link recovery", "unit Disposition.StatesCarryTheirFields")
row("G44", "No link recovery: an unsettled transfer is lost with its connection", "js reconnect/restart",
    "crash kills")
row("G45", "At least once: an accepted message is stored", "crash kills")
row("G46", "Exactly once is not offered at AMQP level", "js queue/duplicates")
row("G47", "Duplicate detection is an option of queues and topics", "js queue/duplicates", "js topic/duplicates")
row("G48", "It remembers message ids for a settable window and silently drops repeats", "js queue/duplicates",
    "crash kills")
row("G49", "Each link has its own flow control beside the session's", "raw performatives/flow-credit",
    "rhea plain-queue/credit")
row("G50", "Transfers need link credit; the receiver sets it with flow", "rhea plain-queue/credit", "raw wire/credit-lowered")
row("G51", "Each delivery uses one credit; at zero deliveries stop", "rhea plain-queue/credit",
    "unit Credit.IsUsedUpAndRenewed")
row("G52", "As receiver the service gives ample credit at once and renews it from time to time with flow",
    "raw wire/attach-sender", "js queue/batch")
row("G53", "As sender the service uses all credit there is", "rhea plain-queue/credit", "js topic/stream")
row("G54", "A receive takes the first available unlocked message, locks it and transfers it",
    "js queue/send-receive-complete", "raw wire/lock-token")
row("G55", "Without messages the credit stays registered in order of arrival and is served when messages come",
    "js queue/empty-receive", "rhea plain-queue/credit",
    "unit QueueCredit.WaitingLinksAreServedInTurnInTheOrderOfTheirCredit")
row("G56", "The lock ends when the transfer is settled accepted, rejected or released", "rhea plain-queue/accept",
    "rhea plain-queue/reject", "rhea plain-queue/release")
row("G57", "Accepted removes the message", "rhea plain-queue/accept", "js queue/send-receive-complete")
row("G58", "In every other terminal state the message stays and goes to the next receiver", "rhea plain-queue/release",
    "rhea plain-queue/reject", note=differs("rejected is a dead letter: it is how the SDKs dead-letter"))
row("G59", "At the maximum delivery count, reached by rejections or releases, the message moves to the dead-letter queue",
    "js queue/max-delivery", "raw topic/max-delivery",
    note=differs("abandon and an expired lock count, released does not"))
row("G60", "One credit per receive makes a pull client", "rhea plain-queue/credit", "js queue/empty-receive")
row("G61", "A large credit makes a push client; PrefetchCount becomes link credit", "js topic/stream")
row("G62", "The lock clock starts when the message is taken from the entity, not when it is on the wire",
    "unit QueueLocks.LockEndsExactlyAtItsTime", "js queue/lock-lost", "js queue/renew-lock")
row("G63", "A receiver that gives credit and does not read may find locks expired on arrival",
    "unit QueueLinks.ALateCompletionIsRefusedAndTheMessageComesBack", "js queue/lock-lost")
row("G64", "Create receiver: attach is answered by attach with the same source and target", "raw topic/attach",
    "unit Attach.AnswerEchoesNameModesAndTerminus")
row("G65", "Create sender: attach is answered by attach with the same source and target", "raw wire/attach-sender")
row("G66", "Failed create: attach with null source and target, then detach(closed=true, error)",
    "raw performatives/refusal", "js connect-tcp/sender")
row("G67", "Close: detach(closed=true) is answered by detach(closed=true)", "raw performatives/detach-answered")
row("G68", "Send: unsettled transfer, then disposition(settled=true, accepted)", "raw wire/send-accepted")
row("G69", "Failed send: the same with rejected(error)", "raw wire/send-rejected")
row("G70", "Receive: flow(credit 1), unsettled transfer, client's disposition(settled=true, accepted)", "raw wire/delivery")
row("G71", "Receive several: one disposition first..last settles all", "raw wire/disposition-range")
row("G72", "header.durable, priority and first-acquirer have no meaning for the service",
    "unit MessageFields.DurablePriorityAndFirstAcquirerChangeNothing")
row("G73", "header.ttl is TimeToLive", "js queue/ttl-dead-letter", "js queue/properties-round-trip")
row("G74", "header.delivery-count is DeliveryCount", "js queue/abandon", "raw wire/delivery")
row("G75", "message-id is chosen by the application and used for duplicate detection", "js queue/duplicates",
    "js queue/properties-round-trip")
row("G76", "user-id, content-encoding, creation-time and group-sequence are not interpreted", "raw wire/bytes-preserved")
row("G77", "to, subject, reply-to, correlation-id and content-type are for the application", "js queue/properties-round-trip",
    "raw wire/bytes-preserved")
row("G78", "absolute-expiry-time is ignored on input (ttl counts) and authoritative on output",
    "unit MessageFields.TheSendersExpiryTimeIsIgnoredAndTheQueuesIsShown")
row("G79", "group-id is SessionId and drives sessions", "js session/order", "raw wire/session-filter-plain")
row("G80", "reply-to-group-id is ReplyToSessionId", "js queue/properties-round-trip")
row("G81", "Advanced operations use request and response messages", "raw wire/management-envelope")
row("G82", "The generic create, read, update, delete and query of the management draft are not implemented",
    "raw wire/management-errors")
row("G83", "Request path: a sender to `entity/$management`, a receiver from it with the client's own target",
    "raw wire/management-envelope")
row("G84", "reply-to names the target of the response link", "raw wire/management-envelope", "rhea cbs/two-pairs")
row("G85", "Response targets must be unique per client and hard to guess", "rhea cbs/two-pairs")
row("G86", "The pattern needs nothing beyond a plain AMQP 1.0 stack", "rhea cbs/put-token", "proton-python cbs/put-token")
row("G87", "SASL offers PLAIN, EXTERNAL, ANONYMOUS and others", "raw sasl/mechanisms", "raw sasl/external-offered",
    "rhea external/client-certificate")
row("G88", "With CBS one connection can hold different tokens for entity A and entity B",
    "rhea cbs/expiry-detaches-one-link")
row("G89", "Tokens can be renewed before they expire without disturbing the traffic", "rhea cbs/renewal")
row("G90", "The node `$cbs` takes tokens on behalf of all other nodes", "rhea cbs/put-token")
row("G91", "Client makes a link pair to `$cbs`, sends a request and waits for the response", "rhea cbs/put-token",
    "raw cbs/response")
row("G92", "Request: `operation` = `put-token`, `type`, `name` (required strings), `expiration` (optional timestamp)",
    "rhea cbs/put-token", "rhea cbs/missing-name")
row("G93", "`name` is the path of the queue, topic or subscription the token is for", "js wrong-key/other-entity",
    "js sas-string/entity")
row("G94", "Token types `amqp:jwt` and `amqp:swt`", "js jwt/hs256", "rhea cbs/unknown-type",
    note=differs("`amqp:jwt` is as good as `jwt`; `amqp:swt` is refused: who issued it does not exist any more"))
row("G95", "Token type `servicebus.windows.net:sastoken`", "rhea cbs/put-token", "js sas-string/namespace")
row("G96", "The token is the body, an AMQP value of type string", "rhea cbs/put-token")
row("G97", "Rights are Send, Listen and Manage", "raw topic/rights", "python admin/access-rules")
row("G98", "A SAS token names a rule of the namespace or entity; signing with its key gives the rights of the rule",
    "js wrong-key/key", "js wrong-key/rule", "rhea cbs/bad-signature")
row("G99", "A sender link needs Send, a receiver link Listen", "raw topic/rights")
row("G100", "Response: `status-code` int and optional `status-description` string", "raw cbs/response")
row("G101", "put-token may be repeated, for any entity", "rhea cbs/renewal", "rhea cbs/two-pairs")
row("G102", "Tokens belong to the connection and go with it", "unit ClientConnection.BeforeATokenNothingButCbsIsAllowed",
    "js reconnect/restart")
row("G103", "CBS works only together with SASL ANONYMOUS", "raw sasl/mssbcbs", "rhea no-sasl/cbs",
    note=differs("also after MSSBCBS, which .NET needs, and PLAIN"))
row("G104", "Until then only links to `$cbs` and put-token are allowed", "rhea anonymous/no-token",
    "rhea no-sasl/attach-refused")
row("G105", "Without a valid token within 20 s the service drops the connection", "raw token/none-is-dropped")
row("G106", "When a token expires the service drops the links of that connection to the entity at once",
    "rhea cbs/expiry-detaches-one-link")
