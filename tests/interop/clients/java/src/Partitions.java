package interop;

import static interop.Steps.bodies;
import static interop.Steps.check;
import static interop.Steps.peek;
import static interop.Steps.same;
import static interop.Steps.take;
import static interop.Steps.takeOne;
import static interop.Steps.text;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** azure-messaging-servicebus with a partitioned queue. Scenario names: runner/scenarios.py. */
final class Partitions {
    private static final int PARTITIONS = 16;

    private Partitions() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("partition/send-receive", Partitions::sendReceive);
        all.put("partition/keyed-order", Partitions::keyedOrder);
        all.put("partition/peek", Partitions::peekAll);
        all.put("partition/schedule", Partitions::schedule);
        all.put("partition/defer", Partitions::defer);
        all.put("partition-session/accept-named", Partitions::acceptNamed);
        all.put("partition-session/accept-next", Partitions::acceptNext);
    }

    private static String[] numbers(int count) {
        return IntStream.range(0, count).mapToObj(String::valueOf).toArray(String[]::new);
    }

    /** The bodies as numbers: between partitions there is no order. */
    private static List<Integer> sorted(List<ServiceBusReceivedMessage> messages) {
        return bodies(messages).stream().map(Integer::valueOf).sorted().collect(Collectors.toList());
    }

    private static List<Integer> upTo(int count) {
        return IntStream.range(0, count).boxed().collect(Collectors.toList());
    }

    private static long partitions(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(m -> m.getSequenceNumber() >> 48).distinct().count();
    }

    private static String sendReceive(Steps s) {
        int count = 2 * PARTITIONS;
        s.send(numbers(count));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> got = take(receiver, count);
        same(sorted(got), upTo(count), "bodies");
        same(partitions(got), (long) PARTITIONS, "partitions");
        got.forEach(receiver::complete);
        s.gone();
        return "";
    }

    private static String keyedOrder(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        for (String number : numbers(10)) {
            for (int key = 0; key < 8; ++key) {
                sender.sendMessage(text(number).setPartitionKey("key " + key));
            }
        }
        Map<String, List<ServiceBusReceivedMessage>> byKey = take(s.receiver(), 80).stream()
            .collect(Collectors.groupingBy(ServiceBusReceivedMessage::getPartitionKey));
        same(byKey.size(), 8, "keys");
        byKey.forEach((key, messages) -> {
            same(bodies(messages), List.of(numbers(10)), "order of " + key);
            same(partitions(messages), 1L, "partitions of " + key);
        });
        return "";
    }

    /** As clients go through everything: on from the last number until nothing comes. */
    private static String peekAll(Steps s) {
        s.send(numbers(40));
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> seen = new ArrayList<>();
        for (long from = 1;;) {
            List<ServiceBusReceivedMessage> page = peek(receiver, 3, from);
            if (page.isEmpty()) {
                break;
            }
            seen.addAll(page);
            from = page.get(page.size() - 1).getSequenceNumber() + 1;
        }
        same(sorted(seen), upTo(40), "bodies");
        same(take(receiver, 40).size(), 40, "none was locked by it");
        return "";
    }

    private static String schedule(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        OffsetDateTime later = OffsetDateTime.now().plusHours(1);
        List<Long> numbers = new ArrayList<>();
        for (String body : numbers(6)) {
            numbers.add(sender.scheduleMessage(text(body), later));
        }
        check(numbers.stream().map(n -> n >> 48).distinct().count() > 1, "all in one partition: " + numbers);
        sender.cancelScheduledMessages(numbers);
        OffsetDateTime soon = OffsetDateTime.now().plusSeconds(1);
        // The SDK sends when its answer is looked at.
        List<Long> soonDue = new ArrayList<>();
        sender.scheduleMessages(List.of(due(), due()), soon).forEach(soonDue::add);
        same(soonDue.get(0) >> 48, soonDue.get(1) >> 48, "partitions of a key");
        same(bodies(take(s.receiver(), 2)), List.of("due", "due"), "due messages");
        return "";
    }

    private static ServiceBusMessage due() {
        return text("due").setPartitionKey("k");
    }

    private static String defer(Steps s) {
        s.send(numbers(8));
        ServiceBusReceiverClient receiver = s.receiver();
        List<Long> asked = new ArrayList<>();
        for (ServiceBusReceivedMessage message : take(receiver, 8)) {
            asked.add(message.getSequenceNumber());
            receiver.defer(message);
        }
        List<ServiceBusReceivedMessage> back =
            receiver.receiveDeferredMessageBatch(asked).stream().collect(Collectors.toList());
        same(back.stream().map(ServiceBusReceivedMessage::getSequenceNumber).collect(Collectors.toList()), asked,
            "numbers, as asked");
        back.forEach(receiver::complete);
        s.gone();
        return "";
    }

    private static ServiceBusSessionReceiverClient sessions(Steps s) {
        return s.keep(s.builder().sessionReceiver().queueName(s.queue).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    private static String acceptNamed(Steps s) {
        for (int n = 0; n < 6; ++n) {
            for (String body : numbers(3)) {
                s.send(text(body).setSessionId("session " + n));
            }
        }
        for (int n = 0; n < 6; ++n) {
            ServiceBusReceiverClient receiver = s.keep(sessions(s).acceptSession("session " + n));
            same(bodies(take(receiver, 3)), List.of("0", "1", "2"), "order");
        }
        return "";
    }

    private static String acceptNext(Steps s) {
        for (String body : numbers(6)) {
            s.send(text(body).setSessionId("session " + body));
        }
        List<ServiceBusReceivedMessage> seen = new ArrayList<>();
        for (int n = 0; n < 6; ++n) {
            ServiceBusReceiverClient receiver = s.keep(sessions(s).acceptNextSession());
            ServiceBusReceivedMessage message = takeOne(receiver);
            same(receiver.getSessionId(), message.getSessionId(), "session");
            receiver.complete(message);
            seen.add(message);
        }
        same(sorted(seen), upTo(6), "sessions");
        return "";
    }
}
