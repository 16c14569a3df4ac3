"""The page about Subscription, statement by statement, and what proves each: see table.py for the notation."""

from .table import missing, part, row

HANDLERS = "scripts run by the server are not there yet"
CHECKED = "the value is read, checked and kept; nothing uses it before there are handlers"

row("S1", "A Subscription belongs to an exchange", "unit ConfigExchanges.GoodDocumentsAreTaken", "raw exchange/delivery")
row("S2", "It extends ObjectMetadata", "unit ConfigExchanges.EveryAttributeArrives")
row("S3", "ConsumerId is an optional string", "unit ConfigExchanges.EveryAttributeArrives")
row("S4", "It identifies the consumer of the queue uniquely", "unit ConfigExchanges.SubscriptionsAreJudged",
    note=part(HANDLERS))
row("S5", "It is for the application: the script can tell the subscriber by it", note=missing(HANDLERS))
row("S6", "RoutingKey decides which messages come to this subscriber", "rhea exchange/direct", "rhea exchange/topic")
row("S7", "RoutingKey is required for Direct and Topic",
    "unit ConfigExchanges.RoutingIsJudgedByTheTypeWhereverThatStands")
row("S8", "Direct: the key is empty or words joined by dots", "unit Exchange.FindingsOfBindings")
row("S9", "A word has the characters a-z, A-Z, 0-9", "unit Exchange.FindingsOfBindings")
row("S10", "Topic: the pattern is empty or words joined by dots", "unit Exchange.FindingsOfBindings",
    "unit Exchange.TopicVectors")
row("S11", "In a pattern `*` stands for one word", "raw exchange/patterns", "unit Exchange.TopicVectors")
row("S12", "In a pattern `#` stands for any number of words", "raw exchange/patterns",
    "unit ExchangeModel.TopicAgreesWithTheDefinition")
row("S13", "RoutingHeaders decides which messages come to this subscriber", "rhea exchange/headers-all",
    "rhea exchange/headers-any")
row("S14", "RoutingHeaders is required for Headers",
    "unit ConfigExchanges.RoutingIsJudgedByTheTypeWhereverThatStands")
row("S15", "RoutingHeaders has type MessageHeaders", "unit ConfigExchanges.HeadersKeepTheirTypes",
    "raw exchange/header-types")
row("S16", "PrefetchSize limits the size of messages in work at once", "raw exchange/prefetch-size")
row("S17", "Default 0 means no limit, values below 0 are wrong", "unit ConfigExchanges.SubscriptionsAreJudged",
    "raw exchange/prefetch-size")
row("S18", "PrefetchCount limits the number of messages in work at once", "rhea exchange/prefetch",
    "raw exchange/prefetch")
row("S19", "Default 0 means no limit, values below 0 are wrong", "unit ConfigExchanges.SubscriptionsAreJudged")
row("S20", "WorkerThreadCount is the number of threads that work on the queue", note=missing(HANDLERS))
row("S21", "It is at least 1", "unit ConfigExchanges.SubscriptionsAreJudged", note=part(CHECKED))
row("S22", "It is not above the CPU cores of the machine", "unit ConfigExchanges.SubscriptionsAreJudged",
    note=part(CHECKED))
row("S23", "MinListenTime is the listening time that does not count as a network failure", note=missing(HANDLERS))
row("S24", "It is in milliseconds, at least 1", "unit ConfigExchanges.SubscriptionsAreJudged", note=part(CHECKED))
row("S25", "A very small value is highly undesirable", "unit ConfigExchanges.SubscriptionsAreJudged", note=part(CHECKED))
row("S26", "AcknowledgePolicy says when the end of handling is confirmed", note=missing(HANDLERS))
row("S27", "A confirmation means: handled, may be deleted from the queue", "rhea exchange/prefetch",
    note=part(HANDLERS))
row("S28", "A message read but not confirmed stays on the server until it is", "raw exchange/restart",
    note=part(HANDLERS))
row("S29", "This survives failures of the consumer", "crash kills", note=part(HANDLERS))
row("S30", "The sender can be told that the message was received and handled", note=missing(HANDLERS))
row("S31", "RejectPolicy says when handling is refused, for a consumer that is not ready", note=missing(HANDLERS))
row("S32", "The server then tries another consumer, until one handles and confirms the message", note=missing(HANDLERS))
row("S33", "The one that refused may get it again", note=missing(HANDLERS))
row("S34", "Refusal must not be used to filter messages", note=missing(HANDLERS))
row("S35", "A reason may be that the node is overloaded", note=missing(HANDLERS))
row("S36", "Handler refers to the script that handles the message", "unit ConfigExchanges.HandlersAreJudgedAsFarAsTheyCanBe",
    note=part(HANDLERS))
row("S37", "The attributes have the JSON types and minimums of the page's schema",
    "unit ConfigExchanges.SubscriptionsAreJudged")
