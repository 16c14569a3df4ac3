package interop;

import static interop.Steps.bodies;
import static interop.Steps.check;
import static interop.Steps.fails;
import static interop.Steps.nothing;
import static interop.Steps.peek;
import static interop.Steps.same;
import static interop.Steps.sees;
import static interop.Steps.take;
import static interop.Steps.takeOne;
import static interop.Steps.text;

import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.amqp.models.AmqpMessageBodyType;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.net.URI;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** azure-messaging-servicebus with a queue: send, receive, settle, schedule, peek. Names: runner/scenarios.py. */
final class Queues {
    private Queues() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("queue/send-receive-complete", Queues::sendReceiveComplete);
        all.put("queue/batch", Queues::batch);
        all.put("queue/receive-and-delete", Queues::receiveAndDelete);
        all.put("queue/abandon", Queues::abandon);
        all.put("queue/abandon-properties", Queues::abandonProperties);
        all.put("queue/defer", Queues::defer);
        all.put("queue/dead-letter", Queues::deadLetter);
        all.put("queue/dead-letter-properties", Queues::deadLetterProperties);
        all.put("queue/schedule", Queues::schedule);
        all.put("queue/cancel-scheduled", Queues::cancelScheduled);
        all.put("queue/schedule-by-annotation", Queues::scheduleByAnnotation);
        all.put("queue/peek", Queues::peekPages);
        all.put("queue/renew-lock", Queues::renewLock);
        all.put("queue/lock-lost", Queues::lockLost);
        all.put("queue/max-delivery", Queues::maxDelivery);
        all.put("queue/ttl-dead-letter", Queues::ttlDeadLetter);
        all.put("queue/duplicates", Queues::duplicates);
        all.put("queue/large-message", Queues::largeMessage);
        all.put("queue/too-large", Queues::tooLarge);
        all.put("queue/properties-round-trip", Queues::propertiesRoundTrip);
        all.put("queue/body-kinds", Queues::bodyKinds);
        all.put("queue/empty-receive", Queues::emptyReceive);
        all.put("queue/forward", Queues::forward);
        all.put("queue/forward-dead-letters", Queues::forwardDeadLetters);
    }

    private static OffsetDateTime now() {
        return OffsetDateTime.now(ZoneOffset.UTC);
    }

    /** Opens the connection first: that takes its time. */
    private static OffsetDateTime soon(Steps s) {
        s.gone();
        return now().plusSeconds(3).truncatedTo(ChronoUnit.MILLIS);
    }

    private static String sendReceiveComplete(Steps s) {
        OffsetDateTime before = now().minusSeconds(1);
        s.send("hello");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        OffsetDateTime after = now().plusSeconds(1);
        same(List.of(got.getBody().toString(), got.getSequenceNumber(), got.getDeliveryCount(), got.getState()),
            List.of("hello", 1L, 0L, ServiceBusMessageState.ACTIVE), "message");
        check(got.getEnqueuedTime().isAfter(before) && got.getEnqueuedTime().isBefore(after),
            "enqueued at " + got.getEnqueuedTime());
        check(got.getLockedUntil().isAfter(after), "locked until " + got.getLockedUntil());
        check(got.getLockToken() != null, "no lock token");
        check(got.getMessageId() != null && !got.getMessageId().isEmpty(), "no message id");
        receiver.complete(got);
        s.gone();
        return "";
    }

    private static String batch(Steps s) {
        int count = 250;
        ServiceBusSenderClient sender = s.sender();
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        for (int n = 0; n < count; ++n) {
            check(batch.tryAddMessage(text(n + " " + "x".repeat(100)).setMessageId("id-" + n)), n + " did not fit");
        }
        sender.sendMessages(batch);
        sender.sendMessages(List.of(text("list 0"), text("list 1")));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> got = take(receiver, count + 2);
        for (int n = 0; n < count; ++n) {
            same(got.get(n).getBody().toString().split(" ")[0], String.valueOf(n), "order");
            same(got.get(n).getMessageId(), "id-" + n, "message id");
            same(got.get(n).getSequenceNumber(), n + 1L, "sequence number");
        }
        same(bodies(got.subList(count, count + 2)), List.of("list 0", "list 1"), "the list");
        got.forEach(receiver::complete);
        s.gone();
        return "";
    }

    private static String receiveAndDelete(Steps s) {
        s.send("a", "b", "c");
        ServiceBusReceiverClient receiver = s.keep(s.builder().receiver().queueName(s.queue)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient());
        same(bodies(take(receiver, 3)), List.of("a", "b", "c"), "bodies");
        s.gone();
        return "";
    }

    private static String abandon(Steps s) {
        s.send("again", "second");
        ServiceBusReceiverClient receiver = s.receiver();
        for (long count = 0; count < 3; ++count) {
            ServiceBusReceivedMessage got = takeOne(receiver);
            // A returned message regains its place, so it is before the second one.
            same(List.of(got.getBody().toString(), got.getDeliveryCount(), got.getSequenceNumber()),
                List.of("again", count, 1L), "delivery " + count);
            if (count < 2) {
                receiver.abandon(got);
            } else {
                receiver.complete(got);
            }
        }
        ServiceBusReceivedMessage other = takeOne(receiver);
        same(List.of(other.getBody().toString(), other.getDeliveryCount()), List.of("second", 0L), "the other message");
        receiver.complete(other);
        s.gone();
        return "";
    }

    private static ServiceBusMessage withProperties(String body, Map<String, Object> properties) {
        ServiceBusMessage message = text(body);
        message.getApplicationProperties().putAll(properties);
        return message;
    }

    private static String abandonProperties(Steps s) {
        s.send(withProperties("m", Map.of("kept", "yes", "changed", "before")));
        ServiceBusReceiverClient receiver = s.receiver();
        receiver.abandon(takeOne(receiver),
            new AbandonOptions().setPropertiesToModify(Map.of("changed", "after", "added", 7)));
        ServiceBusReceivedMessage second = takeOne(receiver);
        same(second.getApplicationProperties(), Map.of("kept", "yes", "changed", "after", "added", 7),
            "after abandoning");
        receiver.defer(second, new DeferOptions().setPropertiesToModify(Map.of("deferred", true)));
        ServiceBusReceivedMessage third = receiver.receiveDeferredMessage(second.getSequenceNumber());
        same(third.getApplicationProperties(), Map.of("kept", "yes", "changed", "after", "added", 7, "deferred", true),
            "after deferring");
        same(third.getBody().toString(), "m", "body");
        receiver.complete(third);
        s.gone();
        return "";
    }

    private static String defer(Steps s) {
        s.send("later", "now");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage first = takeOne(receiver);
        receiver.defer(first);
        ServiceBusReceivedMessage second = takeOne(receiver);
        same(second.getBody().toString(), "now", "after the deferral");
        receiver.complete(second);
        nothing(receiver);
        List<ServiceBusReceivedMessage> seen = peek(receiver, 10, 1);
        same(bodies(seen), List.of("later"), "peek");
        same(seen.get(0).getState(), ServiceBusMessageState.DEFERRED, "state in peek");
        ServiceBusReceivedMessage got = receiver.receiveDeferredMessage(first.getSequenceNumber());
        same(List.of(got.getBody().toString(), got.getSequenceNumber(), got.getState()),
            List.of("later", first.getSequenceNumber(), ServiceBusMessageState.DEFERRED), "by number");
        receiver.complete(got);
        // For a number that is not there the SDK makes an empty answer of the broker's refusal.
        same(bodies(receiver.receiveDeferredMessageBatch(List.of(first.getSequenceNumber()))), List.of(),
            "by number, after the completion");
        s.gone();
        return "";
    }

    private static DeadLetterOptions because(String reason, String description) {
        return new DeadLetterOptions().setDeadLetterReason(reason).setDeadLetterErrorDescription(description);
    }

    private static String deadLetter(Steps s) {
        s.send(withProperties("poison", Map.of("kept", "yes")).setMessageId("p"));
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        receiver.deadLetter(got, because("a reason", "what was wrong with it"));
        s.gone();
        ServiceBusReceiverClient graves = s.graves();
        ServiceBusReceivedMessage letter = takeOne(graves);
        same(List.of(letter.getBody().toString(), letter.getMessageId(), letter.getSequenceNumber()),
            List.of("poison", "p", got.getSequenceNumber()), "message");
        same(letter.getDeadLetterReason(), "a reason", "reason");
        same(letter.getDeadLetterErrorDescription(), "what was wrong with it", "description");
        same(letter.getDeadLetterSource(), null, "source");
        same(letter.getApplicationProperties().get("kept"), "yes", "property");
        s.send(text(letter.getBody() + ", mended"));
        graves.complete(letter);
        sees(graves, 10);
        ServiceBusReceivedMessage again = takeOne(receiver);
        same(again.getBody().toString(), "poison, mended", "resubmitted");
        receiver.complete(again);
        s.gone();
        return "";
    }

    private static String deadLetterProperties(Steps s) {
        s.send(withProperties("poison", Map.of("kept", "yes", "changed", "before")));
        ServiceBusReceiverClient receiver = s.receiver();
        receiver.deadLetter(takeOne(receiver),
            because("r", "d").setPropertiesToModify(Map.of("changed", "after", "added", 7)));
        ServiceBusReceiverClient graves = s.graves();
        ServiceBusReceivedMessage letter = takeOne(graves);
        same(letter.getApplicationProperties(), Map.of("kept", "yes", "changed", "after", "added", 7,
            "DeadLetterReason", "r", "DeadLetterErrorDescription", "d"), "properties");
        graves.complete(letter);
        sees(graves, 10);
        return "";
    }

    /** The messages are there as scheduled, then come out, at their time and not before. */
    private static List<ServiceBusReceivedMessage> arrivesWhenDue(Steps s, OffsetDateTime due, String... expected) {
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> peeked = peek(receiver, 10, 1);
        same(bodies(peeked), List.of(expected), "peek");
        peeked.forEach(m -> same(m.getState(), ServiceBusMessageState.SCHEDULED, "state in peek"));
        nothing(receiver, Duration.ofMillis(500));
        List<ServiceBusReceivedMessage> got = take(receiver, expected.length);
        check(!now().isBefore(due), "it came before its time");
        same(bodies(got), List.of(expected), "bodies");
        for (ServiceBusReceivedMessage message : got) {
            same(message.getScheduledEnqueueTime().toInstant(), due.toInstant(), "scheduled time");
            check(!message.getEnqueuedTime().isBefore(due), "enqueued at " + message.getEnqueuedTime());
            receiver.complete(message);
        }
        s.gone();
        return peeked;
    }

    private static List<Long> numbers(Iterable<Long> numbers) {
        List<Long> all = new ArrayList<>();
        numbers.forEach(all::add);
        return all;
    }

    private static String schedule(Steps s) {
        OffsetDateTime due = soon(s);
        List<Long> numbers = numbers(s.sender().scheduleMessages(List.of(text("one"), text("two")), due));
        List<ServiceBusReceivedMessage> peeked = arrivesWhenDue(s, due, "one", "two");
        same(peeked.stream().map(ServiceBusReceivedMessage::getSequenceNumber).collect(Collectors.toList()), numbers,
            "numbers in peek");
        return "";
    }

    private static String cancelScheduled(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        List<Long> numbers = numbers(sender.scheduleMessages(List.of(text("no"), text("yes")), soon(s)));
        sender.cancelScheduledMessage(numbers.get(0));
        sender.cancelScheduledMessage(numbers.get(0)); // the SDK makes a success of the broker's refusal
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getBody().toString(), "yes", "what was not cancelled");
        receiver.complete(got);
        nothing(receiver);
        s.gone();
        return "";
    }

    private static String scheduleByAnnotation(Steps s) {
        OffsetDateTime due = soon(s);
        s.send(text("dated").setScheduledEnqueueTime(due));
        arrivesWhenDue(s, due, "dated");
        return "";
    }

    private static String peekPages(Steps s) {
        List<String> expected = IntStream.range(0, 25).mapToObj(n -> "m" + n).collect(Collectors.toList());
        s.send(expected.toArray(new String[0]));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> pages = new ArrayList<>();
        while (true) {
            List<ServiceBusReceivedMessage> page = receiver.peekMessages(10).stream().collect(Collectors.toList());
            if (page.isEmpty()) {
                break;
            }
            check(page.size() <= 10, "a page of " + page.size());
            pages.addAll(page);
        }
        same(bodies(pages), expected, "all pages");
        for (int n = 1; n < pages.size(); ++n) {
            check(pages.get(n).getSequenceNumber() > pages.get(n - 1).getSequenceNumber(), "not ascending");
        }
        same(bodies(peek(receiver, 2, pages.get(7).getSequenceNumber())), List.of("m7", "m8"), "from a number on");
        ServiceBusReceivedMessage first = takeOne(receiver);
        sees(receiver, 2, "m0", "m1"); // a locked message is still seen
        receiver.complete(first);
        sees(receiver, 2, "m1", "m2");
        return "";
    }

    private static String renewLock(Steps s) throws InterruptedException {
        s.send("mine");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        OffsetDateTime until = got.getLockedUntil();
        for (OffsetDateTime end = now().plus(s.lock).plusSeconds(3); now().isBefore(end);) {
            Thread.sleep(1500);
            OffsetDateTime renewed = receiver.renewMessageLock(got);
            check(renewed.isAfter(until), "the lock ended " + until + ", renewed until " + renewed);
            until = renewed;
        }
        nothing(s.receiver());
        receiver.complete(got);
        s.gone();
        return "";
    }

    private static String lockLost(Steps s) throws InterruptedException {
        s.send("slow");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getDeliveryCount(), 0L, "delivery count");
        Thread.sleep(s.lock.toMillis() + 700);
        fails(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> receiver.complete(got));
        ServiceBusReceivedMessage again = takeOne(receiver);
        same(List.of(again.getBody().toString(), again.getDeliveryCount()), List.of("slow", 1L), "second delivery");
        check(!again.getLockToken().equals(got.getLockToken()), "the same lock token");
        receiver.complete(again);
        s.gone();
        return "";
    }

    private static String maxDelivery(Steps s) {
        s.send("unwanted");
        ServiceBusReceiverClient receiver = s.receiver();
        receiver.abandon(takeOne(receiver));
        receiver.abandon(takeOne(receiver));
        nothing(receiver);
        ServiceBusReceiverClient graves = s.graves();
        ServiceBusReceivedMessage letter = takeOne(graves);
        same(List.of(letter.getBody().toString(), letter.getDeadLetterReason(), letter.getDeadLetterErrorDescription(),
                letter.getDeliveryCount()),
            List.of("unwanted", "MaxDeliveryCountExceeded", "Message could not be consumed after 2 delivery attempts.",
                2L), "dead letter");
        graves.complete(letter);
        s.gone();
        sees(graves, 10);
        return "";
    }

    private static String ttlDeadLetter(Steps s) {
        s.send(text("by default"), text("wanted longer").setTimeToLive(Duration.ofHours(1)));
        ServiceBusReceiverClient graves = s.graves();
        List<ServiceBusReceivedMessage> letters = take(graves, 2);
        same(bodies(letters), List.of("by default", "wanted longer"), "expired");
        for (ServiceBusReceivedMessage letter : letters) {
            same(List.of(letter.getDeadLetterReason(), letter.getDeadLetterErrorDescription()),
                List.of("TTLExpiredException", "The message expired and was dead lettered."), "why");
            graves.complete(letter);
        }
        s.gone();
        return "";
    }

    private static String duplicates(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        sender.sendMessage(text("first").setMessageId("a"));
        sender.sendMessage(text("repeated").setMessageId("a"));
        sender.sendMessages(List.of(text("second").setMessageId("b"), text("in a batch").setMessageId("a"),
            text("twice in it").setMessageId("b")));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> got = take(receiver, 2);
        same(bodies(got), List.of("first", "second"), "without duplicates");
        got.forEach(receiver::complete);
        s.send(text("after the completion").setMessageId("a"), text("third").setMessageId("c"));
        ServiceBusReceivedMessage last = takeOne(receiver);
        same(last.getBody().toString(), "third", "after the completion");
        receiver.complete(last);
        s.gone();
        return "";
    }

    private static String largeMessage(Steps s) {
        byte[] body = new byte[900 * 1024];
        new Random(1).nextBytes(body);
        s.send(new ServiceBusMessage(body));
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        check(Arrays.equals(got.getBody().toBytes(), body), "the body came back different");
        receiver.complete(got);
        s.gone();
        return "";
    }

    private static String tooLarge(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        String why = fails(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED,
            () -> sender.sendMessage(new ServiceBusMessage(new byte[1200 * 1024])));
        sender.sendMessage(text("small"));
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getBody().toString(), "small", "after the refusal");
        receiver.complete(got);
        s.gone();
        return why;
    }

    private static String propertiesRoundTrip(Steps s) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("text", "zażółć 漢字 🚀");
        properties.put("empty", "");
        properties.put("yes", true);
        properties.put("no", false);
        properties.put("byte", (byte) -8);
        properties.put("short", (short) -1616);
        properties.put("int", -323232);
        properties.put("zero", 0);
        properties.put("largest", Long.MAX_VALUE);
        properties.put("smallest", Long.MIN_VALUE);
        properties.put("float", 0.5f);
        properties.put("double", 3.141592653589793);
        properties.put("tiny", Double.MIN_VALUE);
        properties.put("char", 'ż');
        properties.put("uuid", UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"));
        properties.put("date", new Date(1709209815123L));
        // The SDK sends these three as types that Microsoft describes.
        properties.put("moment", OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 123000000, ZoneOffset.UTC));
        properties.put("span", Duration.ofSeconds(93784));
        properties.put("uri", URI.create("https://example.org/a?b=c"));
        properties.put("klucz ż", "in the key too");
        Duration minutes = Duration.ofMinutes(5);
        s.send(withProperties("body ż", properties).setMessageId("the id").setCorrelationId("the correlation")
            .setContentType("text/plain; charset=utf-8").setSubject("subject ż").setTo("to/somewhere")
            .setReplyTo("reply/to").setReplyToSessionId("reply session").setPartitionKey("key").setTimeToLive(minutes));
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(List.of(got.getBody().toString(), got.getMessageId(), got.getCorrelationId(), got.getContentType(),
                got.getSubject(), got.getTo(), got.getReplyTo(), got.getReplyToSessionId(), got.getPartitionKey(),
                got.getTimeToLive()),
            List.of("body ż", "the id", "the correlation", "text/plain; charset=utf-8", "subject ż", "to/somewhere",
                "reply/to", "reply session", "key", minutes), "system properties");
        same(got.getSessionId(), null, "session id");
        Duration off = Duration.between(got.getEnqueuedTime().plus(minutes), got.getExpiresAt()).abs();
        check(off.toMillis() <= 1, "expires at " + got.getExpiresAt());
        properties.forEach((key, value) -> same(got.getApplicationProperties().get(key), value, key));
        same(got.getApplicationProperties().keySet(), properties.keySet(), "names of properties");
        receiver.complete(got);
        s.gone();
        return "";
    }

    private static String bodyKinds(Steps s) {
        List<Object> sequence = List.of(1, "two", 3.5);
        ServiceBusSenderClient sender = s.sender();
        sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromValue("a string")));
        sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromValue(42L)));
        sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromSequence(sequence)));
        sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromData(new byte[] {0, -1})));
        sender.sendMessage(new ServiceBusMessage(BinaryData.fromBytes(new byte[0])));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> got = take(receiver, 5);
        List<AmqpMessageBody> all = got.stream().map(m -> m.getRawAmqpMessage().getBody()).collect(Collectors.toList());
        same(all.stream().map(AmqpMessageBody::getBodyType).collect(Collectors.toList()),
            List.of(AmqpMessageBodyType.VALUE, AmqpMessageBodyType.VALUE, AmqpMessageBodyType.SEQUENCE,
                AmqpMessageBodyType.DATA, AmqpMessageBodyType.DATA), "kinds of body");
        same(all.get(0).getValue(), "a string", "string");
        same(all.get(1).getValue(), 42L, "number");
        same(all.get(2).getSequence(), sequence, "sequence");
        check(Arrays.equals(all.get(3).getFirstData(), new byte[] {0, -1}), "the bytes came back different");
        same(all.get(4).getFirstData().length, 0, "empty data");
        got.forEach(receiver::complete);
        s.gone();
        return "";
    }

    private static String emptyReceive(Steps s) {
        ServiceBusReceiverClient receiver = s.receiver();
        for (String body : List.of("m0", "m1")) {
            nothing(receiver);
            s.send(body);
            ServiceBusReceivedMessage got = takeOne(receiver);
            same(List.of(got.getBody().toString(), got.getDeliveryCount()), List.of(body, 0L),
                "after the empty receive");
            receiver.complete(got);
        }
        s.gone();
        return "";
    }

    private static String forward(Steps s) {
        s.send(withProperties("onward", Map.of("kept", "yes")).setMessageId("f"));
        ServiceBusReceiverClient receiver =
            s.receiver(s.report.context.get("destinations").get("queue/forward").asText());
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(List.of(got.getBody().toString(), got.getMessageId(), got.getApplicationProperties()),
            List.of("onward", "f", Map.of("kept", "yes")), "forwarded");
        same(List.of(got.getSequenceNumber(), got.getEnqueuedSequenceNumber()), List.of(1L, 1L), "numbers");
        receiver.complete(got);
        return "";
    }

    private static String forwardDeadLetters(Steps s) {
        s.send("poison");
        ServiceBusReceiverClient receiver = s.receiver();
        receiver.deadLetter(takeOne(receiver), because("r", "d"));
        ServiceBusReceiverClient graves =
            s.receiver(s.report.context.get("destinations").get("queue/forward-dead-letters").asText());
        ServiceBusReceivedMessage got = takeOne(graves);
        same(List.of(got.getBody().toString(), got.getDeadLetterReason(), got.getDeadLetterErrorDescription(),
            got.getDeadLetterSource()), List.of("poison", "r", "d", s.queue), "forwarded dead letter");
        graves.complete(got);
        s.gone();
        return "";
    }
}
