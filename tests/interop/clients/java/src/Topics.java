package interop;

import static interop.Steps.bodies;
import static interop.Steps.check;
import static interop.Steps.fails;
import static interop.Steps.holds;
import static interop.Steps.nothing;
import static interop.Steps.peek;
import static interop.Steps.same;
import static interop.Steps.sees;
import static interop.Steps.take;
import static interop.Steps.takeOne;
import static interop.Steps.text;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** azure-messaging-servicebus with a topic. Names: runner/scenarios.py, shapes: runner/topics.py. */
final class Topics {
    private Topics() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("topic/publish", Topics::publish);
        all.put("topic/batch", Topics::batch);
        all.put("topic/settle", Topics::settle);
        all.put("topic/receive-and-delete", Topics::receiveAndDelete);
        all.put("topic/dead-letter", Topics::deadLetter);
        all.put("topic/session", Topics::session);
        all.put("topic/defer", Topics::defer);
        all.put("topic/peek", Topics::peekPages);
        all.put("topic/schedule", Topics::schedule);
        all.put("topic/cancel-scheduled", Topics::cancelScheduled);
        all.put("topic/duplicates", Topics::duplicates);
        all.put("topic/sql-filter", Topics::sqlFilter);
        all.put("topic/correlation-filter", Topics::correlationFilter);
        all.put("topic/true-false-filter", Topics::trueFalseFilter);
        all.put("topic/nobody", Topics::nobody);
        all.put("topic/action", Topics::action);
        all.put("topic/filter-error", Topics::filterError);
        all.put("topic/ttl", Topics::ttl);
        all.put("topic/stream", Topics::stream);
        all.put("topic/forward-to-queue", Topics::forwardToQueue);
        all.put("topic/forward-from-queue", Topics::forwardFromQueue);
        all.put("topic/wrong-direction", Topics::wrongDirection);
        all.put("topic/letter-case", Topics::letterCase);
        all.put("exchange/sdk", Topics::exchange);
    }

    private static OffsetDateTime now() {
        return OffsetDateTime.now(ZoneOffset.UTC);
    }

    /** Opens the connection first: that takes its time. */
    private static OffsetDateTime soon(Steps s) {
        s.holds("a");
        return now().plusSeconds(2).truncatedTo(ChronoUnit.MILLIS);
    }

    private static ServiceBusMessage with(String body, Object... pairs) {
        ServiceBusMessage message = text(body);
        for (int n = 0; n < pairs.length; n += 2) {
            message.getApplicationProperties().put((String) pairs[n], pairs[n + 1]);
        }
        return message;
    }

    private static List<Object> why(ServiceBusReceivedMessage letter) {
        return List.of(letter.getDeadLetterReason(), letter.getDeadLetterErrorDescription());
    }

    /** What the SDK makes of amqp:not-allowed. */
    private static String notAllowed(Runnable action) {
        return fails("an unsupported operation", t -> t instanceof UnsupportedOperationException, action);
    }

    /** The synchronous receiver hides the reason behind "the receiver client is terminated". */
    private static Runnable receive(ServiceBusReceiverClientBuilder builder) {
        return () -> {
            try (ServiceBusReceiverAsyncClient receiver = builder.buildAsyncClient()) {
                receiver.receiveMessages().blockFirst(Duration.ofSeconds(10));
            }
        };
    }

    private static String publish(Steps s) {
        s.publish(with("one", "kept", "yes").setMessageId("m1").setSubject("s"), text("two"));
        for (String name : List.of("a", "b")) {
            List<ServiceBusReceivedMessage> got = s.holds(name, "one", "two");
            ServiceBusReceivedMessage one = got.get(0);
            same(List.of(one.getMessageId(), one.getSubject(), one.getApplicationProperties()),
                List.of("m1", "s", Map.of("kept", "yes")), "message");
            for (int n = 0; n < 2; ++n) {
                same(List.of(got.get(n).getSequenceNumber(), got.get(n).getEnqueuedSequenceNumber(),
                    got.get(n).getDeliveryCount()), List.of(n + 1L, n + 1L, 0L), "numbers");
            }
        }
        s.publish("three");
        s.holds("b", "three");
        s.holds("a", "three");
        return "";
    }

    private static String batch(Steps s) {
        ServiceBusSenderClient sender = s.publisher();
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        String[] numbers = IntStream.range(0, 100).mapToObj(String::valueOf).toArray(String[]::new);
        for (String n : numbers) {
            check(batch.tryAddMessage(text(n).setMessageId("id-" + n)), n + " did not fit");
        }
        sender.sendMessages(batch);
        for (String name : List.of("a", "b")) {
            List<ServiceBusReceivedMessage> got = s.holds(name, numbers);
            for (int n = 0; n < numbers.length; ++n) {
                same(List.of(got.get(n).getMessageId(), got.get(n).getSequenceNumber()), List.of("id-" + n, n + 1L),
                    "message");
            }
        }
        return "";
    }

    private static String settle(Steps s) {
        s.publish("complete", "abandon", "defer", "dead-letter");
        ServiceBusReceiverClient receiver = s.subscription("a");
        List<ServiceBusReceivedMessage> got = take(receiver, 4);
        receiver.complete(got.get(0));
        receiver.abandon(got.get(1), new AbandonOptions().setPropertiesToModify(Map.of("added", 1)));
        receiver.defer(got.get(2));
        receiver.deadLetter(got.get(3),
            new DeadLetterOptions().setDeadLetterReason("r").setDeadLetterErrorDescription("d"));
        ServiceBusReceivedMessage again = takeOne(receiver);
        same(List.of(again.getBody().toString(), again.getDeliveryCount(), again.getApplicationProperties()),
            List.of("abandon", 1L, Map.of("added", 1)), "abandoned");
        receiver.complete(again);
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(got.get(2).getSequenceNumber());
        same(List.of(deferred.getBody().toString(), deferred.getState()),
            List.of("defer", ServiceBusMessageState.DEFERRED), "deferred");
        receiver.complete(deferred);
        sees(receiver, 10);
        same(why(holds(s.gravesOf("a"), "dead-letter").get(0)), List.of("r", "d"), "why");
        return "";
    }

    private static String receiveAndDelete(Steps s) {
        s.publish("one", "two");
        ServiceBusReceiverClient receiver = s.keep(s.builder().receiver().topicName(s.queue).subscriptionName("a")
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient());
        same(bodies(take(receiver, 2)), List.of("one", "two"), "bodies");
        s.holds("a");
        s.holds("b", "one", "two");
        return "";
    }

    private static String deadLetter(Steps s) {
        s.publish(with("poison", "kept", "yes").setMessageId("p"));
        ServiceBusReceiverClient receiver = s.subscription("a");
        ServiceBusReceivedMessage got = takeOne(receiver);
        receiver.deadLetter(got,
            new DeadLetterOptions().setDeadLetterReason("a reason").setDeadLetterErrorDescription("more"));
        sees(receiver, 10);
        holds(s.gravesOf("b"));
        ServiceBusReceivedMessage letter = holds(s.gravesOf("a"), "poison").get(0);
        same(List.of(letter.getMessageId(), letter.getSequenceNumber(), letter.getApplicationProperties().get("kept")),
            List.of("p", got.getSequenceNumber(), "yes"), "message");
        same(why(letter), List.of("a reason", "more"), "why");
        s.holds("b", "poison"); // its own copy
        return "";
    }

    private static String session(Steps s) {
        s.publish(text("x1").setSessionId("x"), text("nobody's"), text("y1").setSessionId("y"),
            text("x2").setSessionId("x"));
        ServiceBusSessionReceiverClient sessions = s.keep(s.builder().sessionReceiver().topicName(s.queue)
            .subscriptionName("s").disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient());
        ServiceBusReceiverClient receiver = s.keep(sessions.acceptSession("x"));
        same(receiver.getSessionId(), "x", "session id");
        receiver.setSessionState("halfway".getBytes(UTF_8));
        List<ServiceBusReceivedMessage> got = take(receiver, 2);
        same(bodies(got), List.of("x1", "x2"), "session x");
        same(got.get(0).getSessionId(), "x", "session id of a message");
        got.forEach(receiver::complete);
        same(new String(receiver.getSessionState(), UTF_8), "halfway", "state");
        receiver.renewSessionLock();
        receiver.close();
        ServiceBusReceiverClient next = s.keep(sessions.acceptNextSession());
        same(next.getSessionId(), "y", "the other session");
        ServiceBusReceivedMessage other = takeOne(next);
        same(other.getBody().toString(), "y1", "body");
        next.complete(other);
        same(holds(s.gravesOf("s"), "nobody's").get(0).getDeadLetterReason(), "Session ID is null.", "why");
        s.holds("p", "x1", "nobody's", "y1", "x2"); // it has no sessions
        return notAllowed(receive(s.builder().receiver().topicName(s.queue).subscriptionName("s")));
    }

    private static String defer(Steps s) {
        s.publish("later", "now");
        ServiceBusReceiverClient receiver = s.subscription("a");
        ServiceBusReceivedMessage first = takeOne(receiver);
        receiver.defer(first);
        ServiceBusReceivedMessage second = takeOne(receiver);
        same(second.getBody().toString(), "now", "after the deferral");
        receiver.complete(second);
        nothing(receiver, Duration.ofMillis(300));
        List<ServiceBusReceivedMessage> seen = peek(receiver, 10, 1);
        same(bodies(seen), List.of("later"), "peek");
        same(seen.get(0).getState(), ServiceBusMessageState.DEFERRED, "state in peek");
        long number = first.getSequenceNumber();
        same(bodies(s.subscription("b").receiveDeferredMessageBatch(List.of(number))), List.of(), "elsewhere");
        ServiceBusReceivedMessage got = receiver.receiveDeferredMessage(number);
        same(List.of(got.getBody().toString(), got.getSequenceNumber()), List.of("later", number), "by number");
        receiver.complete(got);
        sees(receiver, 10);
        s.holds("b", "later", "now");
        return "";
    }

    private static String peekPages(Steps s) {
        List<String> expected = IntStream.range(0, 12).mapToObj(n -> "m" + n).collect(Collectors.toList());
        s.publish(expected.toArray(new String[0]));
        ServiceBusReceiverClient receiver = s.subscription("a");
        same(bodies(receiver.peekMessages(5)), expected.subList(0, 5), "first page");
        same(bodies(receiver.peekMessages(50)), expected.subList(5, 12), "the rest");
        same(bodies(receiver.peekMessages(5)), List.of(), "after the last");
        ServiceBusReceivedMessage first = takeOne(receiver);
        sees(receiver, 2, "m0", "m1"); // a locked message is still seen
        receiver.complete(first);
        sees(receiver, 2, "m1", "m2");
        sees(s.subscription("b"), 2, "m0", "m1");
        return "";
    }

    private static String schedule(Steps s) {
        ServiceBusSenderClient sender = s.publisher();
        OffsetDateTime due = soon(s);
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(List.of(text("one"), text("two")), due).forEach(numbers::add);
        same(numbers.size(), 2, "sequence numbers");
        sees(s.subscription("a"), 10); // copies are made when it is due
        for (String name : List.of("a", "b")) {
            for (ServiceBusReceivedMessage got : s.holds(name, "one", "two")) {
                same(got.getScheduledEnqueueTime().toInstant(), due.toInstant(), "scheduled time");
                check(!got.getEnqueuedTime().isBefore(due) && !now().isBefore(due),
                    "enqueued at " + got.getEnqueuedTime() + ", due " + due);
            }
        }
        OffsetDateTime dated = now().plusSeconds(1).truncatedTo(ChronoUnit.MILLIS);
        sender.sendMessage(text("dated").setScheduledEnqueueTime(dated));
        s.holds("a", "dated");
        s.holds("b", "dated");
        check(!now().isBefore(dated), "it came before its time");
        return "";
    }

    private static String cancelScheduled(Steps s) {
        ServiceBusSenderClient sender = s.publisher();
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(List.of(text("no"), text("yes")), soon(s)).forEach(numbers::add);
        sender.cancelScheduledMessage(numbers.get(0));
        sender.cancelScheduledMessage(numbers.get(0)); // the SDK makes a success of the broker's refusal
        s.holds("a", "yes");
        s.holds("b", "yes");
        return "";
    }

    private static String duplicates(Steps s) {
        s.publish(text("first").setMessageId("a"), text("repeated").setMessageId("a"));
        s.publisher().sendMessages(List.of(text("second").setMessageId("b"), text("in a batch").setMessageId("a"),
            text("twice in it").setMessageId("b")));
        s.holds("a", "first", "second");
        s.publish(text("after the completion").setMessageId("a"), text("third").setMessageId("c"));
        s.holds("a", "third");
        s.holds("b", "first", "second", "third");
        return "";
    }

    private static String sqlFilter(Steps s) {
        s.publish(with("m1", "color", "red", "quantity", 5).setSubject("order-1"),
            with("m2", "color", "blue", "quantity", 50L).setSubject("order-2"),
            with("m3", "quantity", 1.0).setSubject("other"),
            with("m4", "color", "RED", "quantity", (short) 20).setSubject("Order"));
        s.holds("red", "m1");
        s.holds("large", "m2");
        s.holds("colorless", "m3");
        s.holds("either", "m2", "m3", "m4"); // one copy, however many rules match
        return "";
    }

    private static String correlationFilter(Steps s) {
        s.publish(with("m1", "region", "eu", "n", 2).setSubject("order").setCorrelationId("c-1"),
            with("m2", "region", "us", "n", "2").setSubject("Order").setCorrelationId("c-1"),
            text("m3").setMessageId("m-1").setTo("there").setReplyTo("back").setContentType("text/x"));
        s.holds("label", "m1");
        s.holds("two-fields", "m1");
        s.holds("number", "m1");
        s.holds("identity", "m3");
        return "";
    }

    private static String trueFalseFilter(Steps s) {
        s.publish(text("m1"), with("m2", "wanted", "yes"));
        s.holds("yes", "m1", "m2");
        s.holds("both", "m1", "m2");
        s.holds("no");
        return "";
    }

    private static String nobody(Steps s) {
        s.publish("unwanted"); // accepted and dropped
        s.publisher().sendMessages(List.of(text("u1"), text("u2")));
        s.holds("no");
        return "";
    }

    private static String action(Steps s) {
        Map<String, Object> properties = Map.of("color", "red", "quantity", 7, "kept", "yes");
        ServiceBusMessage message = text("m").setSubject("label").setMessageId("id");
        message.getApplicationProperties().putAll(properties);
        s.publish(message);
        ServiceBusReceivedMessage plain = s.holds("plain", "m").get(0);
        same(List.of(plain.getSubject(), plain.getApplicationProperties()), List.of("label", properties),
            "another subscription's copy");
        ServiceBusReceivedMessage changed = s.holds("changed", "m").get(0);
        same(List.of(changed.getSubject(), changed.getMessageId()), List.of("relabelled", "id"), "system properties");
        same(changed.getApplicationProperties(), // an existing property keeps its type
            Map.of("quantity", 14, "kept", "yes", "added", "by rule", "RuleName", "change"), "changed");
        List<ServiceBusReceivedMessage> copies = s.holds("copies", "m", "m", "m");
        for (int n = 0; n < 3; ++n) {
            Map<String, Object> expected = new HashMap<>(properties);
            if (n > 0) {
                expected.putAll(Map.of("mark", (long) n, "RuleName", "marked-" + n));
            }
            same(copies.get(n).getApplicationProperties(), expected, "one copy for each action");
            same(copies.get(n).getSequenceNumber(), n + 1L, "number");
        }
        return "";
    }

    private static String filterError(Steps s) {
        s.publish(with("bad", "quantity", 0), with("good", "quantity", 10));
        s.holds("strict", "good");
        s.holds("other", "bad", "good");
        ServiceBusReceivedMessage letter = holds(s.gravesOf("strict"), "bad").get(0);
        same(letter.getDeadLetterReason(), "FilterException", "why");
        check(letter.getDeadLetterErrorDescription().contains("division"),
            "no rule: " + letter.getDeadLetterErrorDescription());
        return letter.getDeadLetterErrorDescription();
    }

    private static String ttl(Steps s) {
        s.publish(text("by default"), text("wanted longer").setTimeToLive(Duration.ofHours(1)));
        for (ServiceBusReceivedMessage letter : holds(s.gravesOf("short"), "by default", "wanted longer")) {
            same(why(letter), List.of("TTLExpiredException", "The message expired and was dead lettered."), "why");
        }
        s.holds("short");
        s.holds("long", "by default", "wanted longer");
        return "";
    }

    private static String stream(Steps s) throws InterruptedException {
        String[] expected = IntStream.range(0, 60).mapToObj(n -> "m" + n).toArray(String[]::new);
        List<String> came = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch left = new CountDownLatch(expected.length);
        ServiceBusProcessorClient processor = s.keep(s.builder().processor().topicName(s.queue).subscriptionName("a")
            .maxConcurrentCalls(5).processMessage(context -> {
                came.add(context.getMessage().getBody().toString());
                left.countDown();
            }).processError(context -> came.add(context.getException().toString())).buildProcessorClient());
        processor.start();
        s.publish(expected);
        check(left.await(10, TimeUnit.SECONDS), came.size() + " of " + expected.length + " messages came");
        ServiceBusReceiverClient receiver = s.subscription("a");
        for (int n = 0; n < 50 && !peek(receiver, 1, 1).isEmpty(); ++n) {
            Thread.sleep(20); // the last ones are being settled
        }
        sees(receiver, 10);
        processor.close();
        List<String> sorted = Arrays.stream(expected).sorted().collect(Collectors.toList());
        same(came.stream().sorted().collect(Collectors.toList()), sorted, "what came");
        sees(s.subscription("b"), 100, expected);
        return "";
    }

    private static String forwardToQueue(Steps s) {
        s.publish(with("onward", "kept", "yes").setMessageId("f"));
        ServiceBusReceiverClient receiver =
            s.receiver(s.report.context.get("destinations").get("topic/forward-to-queue").asText());
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(List.of(got.getBody().toString(), got.getMessageId(), got.getApplicationProperties()),
            List.of("onward", "f", Map.of("kept", "yes")), "forwarded");
        receiver.complete(got);
        s.holds("b", "onward");
        return notAllowed(receive(s.builder().receiver().topicName(s.queue).subscriptionName("a")));
    }

    private static String forwardFromQueue(Steps s) {
        String source = s.report.context.get("sources").get("topic/forward-from-queue").asText();
        s.keep(s.builder().sender().queueName(source).buildClient())
            .sendMessage(with("onward", "kept", "yes").setMessageId("f"));
        for (String name : List.of("a", "b")) {
            ServiceBusReceivedMessage got = s.holds(name, "onward").get(0);
            same(List.of(got.getMessageId(), got.getApplicationProperties()), List.of("f", Map.of("kept", "yes")),
                "forwarded");
        }
        return "";
    }

    private static String wrongDirection(Steps s) {
        for (String below : List.of("/Subscriptions/a", "/Subscriptions/a/$DeadLetterQueue")) {
            ServiceBusSenderClient sender = s.keep(s.builder().sender().topicName(s.queue + below).buildClient());
            notAllowed(() -> sender.sendMessage(text("x")));
        }
        notAllowed(receive(s.builder().receiver().queueName(s.queue)));
        return fails(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND,
            receive(s.builder().receiver().topicName(s.queue).subscriptionName("no-such")));
    }

    private static String letterCase(Steps s) {
        String loud = s.queue.toUpperCase(Locale.ROOT);
        s.keep(s.builder().sender().topicName(loud).buildClient()).sendMessage(text("shouted"));
        ServiceBusReceiverClient receiver = s.keep(s.builder().receiver().topicName(s.queue.replace("topic", "ToPiC"))
            .subscriptionName("aUDIT").disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient());
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getBody().toString(), "shouted", "body");
        receiver.deadLetter(got);
        sees(receiver, 10);
        holds(s.gravesOf("AUDIT"), "shouted");
        return "";
    }

    private static String exchange(Steps s) {
        s.publish(text("m1").setSubject("order.eu.paid"), text("m2").setSubject("order.us.open"), text("m3"));
        s.holds("paid", "m1");
        s.holds("eu", "m1");
        List<String> keys = List.of("order.eu.paid", "order.us.open", "");
        List<ServiceBusReceivedMessage> all = s.holds("all", "m1", "m2", "m3");
        for (int n = 0; n < 3; ++n) {
            Map<String, Object> annotations = all.get(n).getRawAmqpMessage().getMessageAnnotations();
            same(List.of(annotations.get("x-exchange"), annotations.get("x-routing-key")),
                List.of(s.queue, keys.get(n)), "annotations");
        }
        return "";
    }
}
