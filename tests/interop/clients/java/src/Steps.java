package interop;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** One scenario at work: a connection, a queue of its own that is empty at the start, and strict little steps. */
final class Steps implements AutoCloseable {
    /** A scenario that works on its queue and returns the detail. */
    interface Body {
        String run(Steps steps) throws Exception;
    }

    private static final Duration LIMIT = Duration.ofSeconds(10);

    final Report report;
    final String queue;
    final Duration lock;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();
    private final ServiceBusClientBuilder builder;

    Steps(Report report, String scenario) {
        this.report = report;
        queue = report.context.get("queues").get(scenario).asText();
        lock = Duration.ofSeconds(report.context.get("lock_seconds").asInt());
        builder = builder(Duration.ofSeconds(12));
    }

    /** Nothing is retried by the SDK: what the broker answers first is what counts. */
    ServiceBusClientBuilder builder(Duration tryTimeout) {
        return new ServiceBusClientBuilder()
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(tryTimeout))
            .connectionString(report.broker("queues").get("emulator").asText());
    }

    ServiceBusClientBuilder builder() {
        return builder;
    }

    /** Closes it with the scenario, last one first. */
    <T extends AutoCloseable> T keep(T client) {
        open.push(client);
        return client;
    }

    @Override
    public void close() {
        while (!open.isEmpty()) {
            try {
                open.pop().close();
            } catch (Exception e) {
                throw new IllegalStateException("closing failed", e);
            }
        }
    }

    ServiceBusSenderClient sender() {
        return keep(builder.sender().queueName(queue).buildClient());
    }

    /** Without the SDK's own lock renewal. */
    ServiceBusReceiverClient receiver() {
        return receiver(queue);
    }

    ServiceBusReceiverClient receiver(String name) {
        return keep(builder.receiver().queueName(name).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO)
            .buildClient());
    }

    ServiceBusReceiverClient graves() {
        return keep(builder.receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    /** A subscription of the scenario's topic. */
    ServiceBusReceiverClient subscription(String name) {
        return keep(builder.receiver().topicName(queue).subscriptionName(name).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    ServiceBusReceiverClient gravesOf(String name) {
        return keep(builder.receiver().topicName(queue).subscriptionName(name).subQueue(SubQueue.DEAD_LETTER_QUEUE)
            .disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    ServiceBusSenderClient publisher() {
        return keep(builder.sender().topicName(queue).buildClient());
    }

    void publish(ServiceBusMessage... messages) {
        ServiceBusSenderClient sender = publisher();
        for (ServiceBusMessage message : messages) {
            sender.sendMessage(message);
        }
    }

    void publish(String... bodies) {
        publish(Arrays.stream(bodies).map(Steps::text).toArray(ServiceBusMessage[]::new));
    }

    /** Takes and completes exactly these messages, in this order; nothing else is there. */
    static List<ServiceBusReceivedMessage> holds(ServiceBusReceiverClient from, String... expected) {
        List<ServiceBusReceivedMessage> got = expected.length == 0 ? List.of() : take(from, expected.length);
        same(bodies(got), List.of(expected), from.getEntityPath());
        got.forEach(from::complete);
        sees(from, 10);
        from.close();
        return got;
    }

    List<ServiceBusReceivedMessage> holds(String name, String... expected) {
        return holds(subscription(name), expected);
    }

    static ServiceBusMessage text(String body) {
        return new ServiceBusMessage(body);
    }

    void send(ServiceBusMessage... messages) {
        ServiceBusSenderClient sender = sender();
        for (ServiceBusMessage message : messages) {
            sender.sendMessage(message);
        }
    }

    void send(String... bodies) {
        send(Arrays.stream(bodies).map(Steps::text).toArray(ServiceBusMessage[]::new));
    }

    /** Exactly `count` messages, however many calls that needs. */
    static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient from, int count) {
        List<ServiceBusReceivedMessage> all = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        while (all.size() < count) {
            long left = end - System.nanoTime();
            check(left > 0, all.size() + " of " + count + " messages came within " + LIMIT);
            from.receiveMessages(count - all.size(), Duration.ofNanos(left)).forEach(all::add);
        }
        return all;
    }

    static ServiceBusReceivedMessage takeOne(ServiceBusReceiverClient from) {
        return take(from, 1).get(0);
    }

    static void nothing(ServiceBusReceiverClient from, Duration wait) {
        same(bodies(from.receiveMessages(1, wait)), List.of(), "an empty receive");
    }

    static void nothing(ServiceBusReceiverClient from) {
        nothing(from, Duration.ofSeconds(1));
    }

    static List<ServiceBusReceivedMessage> peek(ServiceBusReceiverClient from, int count, long number) {
        return from.peekMessages(count, number).stream().collect(Collectors.toList());
    }

    static void sees(ServiceBusReceiverClient from, int count, String... expected) {
        same(bodies(peek(from, count, 1)), List.of(expected), "peek");
    }

    /** Nothing at all is in the queue, not even locked or deferred. */
    void gone() {
        sees(receiver(), 10);
    }

    static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
        List<String> all = new ArrayList<>();
        messages.forEach(message -> all.add(message.getBody().toString()));
        return all;
    }

    static void check(boolean condition, String text) {
        if (!condition) {
            throw new IllegalStateException(text);
        }
    }

    static void same(Object got, Object expected, String what) {
        check(Objects.equals(got, expected), what + ": expected " + expected + ", got " + got);
    }

    static String fails(ServiceBusFailureReason reason, Runnable action) {
        return fails(reason.toString(),
            t -> t instanceof ServiceBusException && ((ServiceBusException) t).getReason().equals(reason), action);
    }

    /** The exception or one of its causes must match. */
    static String fails(String what, Predicate<Throwable> matches, Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            for (Throwable t = e; t != null; t = t.getCause()) {
                if (matches.test(t)) {
                    return t.toString();
                }
            }
            throw new IllegalStateException("expected " + what + ", got " + e, e);
        }
        throw new IllegalStateException("expected " + what + ", but it worked");
    }

    /** The SDK has no reason of its own for most refusals; the condition is in the inner exception. */
    static Predicate<Throwable> condition(String text) {
        return t -> t instanceof AmqpException && ((AmqpException) t).getErrorCondition() != null
            && ((AmqpException) t).getErrorCondition().getErrorCondition().equals(text);
    }
}
