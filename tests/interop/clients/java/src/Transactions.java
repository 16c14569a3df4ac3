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

import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** azure-messaging-servicebus with transactions over two queues. Scenario names: runner/scenarios.py. */
final class Transactions {
    private Transactions() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("transaction/commit", Transactions::commit);
        all.put("transaction/rollback", Transactions::rollback);
        all.put("transaction/settle", Transactions::settle);
        all.put("transaction/cross-entity", Transactions::crossEntity);
        all.put("transaction/cross-entity-rollback", Transactions::crossEntityRollback);
        all.put("transaction/schedule", Transactions::schedule);
        all.put("transaction/lock-lost", Transactions::lockLost);
    }

    private static String partner(Steps s, String scenario) {
        return s.report.context.get("partners").get(scenario).asText();
    }

    private static CompleteOptions complete(ServiceBusTransactionContext transaction) {
        return new CompleteOptions().setTransactionContext(transaction);
    }

    private static ServiceBusReceiverClient receiver(Steps s, ServiceBusClientBuilder builder, String queue) {
        return s.keep(builder.receiver().queueName(queue).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    private static String commit(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessage(text("one"), transaction);
        sender.sendMessages(List.of(text("two"), text("three")), transaction);
        sees(receiver, 10);
        sender.commitTransaction(transaction);
        List<ServiceBusReceivedMessage> got = take(receiver, 3);
        same(bodies(got), List.of("one", "two", "three"), "after the commit");
        transaction = receiver.createTransaction();
        for (ServiceBusReceivedMessage message : got) {
            receiver.complete(message, complete(transaction));
        }
        same(peek(receiver, 10, 1).size(), 3, "completed, not committed");
        receiver.commitTransaction(transaction);
        s.gone();
        return "";
    }

    private static String rollback(Steps s) throws Exception {
        s.send("work");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusSenderClient sender = s.sender();
        ServiceBusReceivedMessage message = takeOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        sender.sendMessage(text("never"), transaction);
        receiver.complete(message, complete(transaction));
        receiver.rollbackTransaction(transaction);
        nothing(s.receiver());
        TimeUnit.MILLISECONDS.sleep(s.lock.toMillis());
        ServiceBusReceivedMessage again = takeOne(receiver);
        same(again.getBody().toString(), "work", "body");
        same(again.getDeliveryCount(), 1L, "delivery count");
        // And in the next transaction it works.
        transaction = receiver.createTransaction();
        receiver.complete(again, complete(transaction));
        receiver.commitTransaction(transaction);
        s.gone();
        return "";
    }

    private static String settle(Steps s) {
        s.send("abandon", "defer", "dead-letter", "complete");
        ServiceBusReceiverClient receiver = s.receiver();
        List<ServiceBusReceivedMessage> got = take(receiver, 4);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.abandon(got.get(0), new AbandonOptions().setTransactionContext(transaction));
        receiver.defer(got.get(1), new DeferOptions().setTransactionContext(transaction));
        receiver.deadLetter(got.get(2), new DeadLetterOptions().setDeadLetterReason("why")
            .setDeadLetterErrorDescription("because").setTransactionContext(transaction));
        receiver.complete(got.get(3), complete(transaction));
        sees(s.graves(), 10);
        receiver.commitTransaction(transaction);
        ServiceBusReceivedMessage dead = takeOne(s.graves());
        same(List.of(dead.getBody().toString(), dead.getDeadLetterReason(), dead.getDeadLetterErrorDescription()),
            List.of("dead-letter", "why", "because"), "dead letter");
        ServiceBusReceivedMessage again = takeOne(receiver);
        same(again.getBody().toString(), "abandon", "what was abandoned");
        same(again.getDeliveryCount(), 1L, "delivery count");
        // A deferred message has no delivery: this goes over the management node, in a transaction too.
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(got.get(1).getSequenceNumber());
        transaction = receiver.createTransaction();
        receiver.complete(deferred, complete(transaction));
        receiver.complete(again, complete(transaction));
        same(peek(receiver, 10, 1).size(), 2, "before the commit");
        receiver.commitTransaction(transaction);
        s.gone();
        return "";
    }

    private static String crossEntity(Steps s) {
        String partner = partner(s, "transaction/cross-entity");
        s.send("work", "more");
        ServiceBusClientBuilder builder = s.builder(Duration.ofSeconds(12)).enableCrossEntityTransactions();
        ServiceBusReceiverClient receiver = receiver(s, builder, s.queue);
        ServiceBusSenderClient sender = s.keep(builder.sender().queueName(partner).buildClient());
        for (ServiceBusReceivedMessage message : take(receiver, 2)) {
            ServiceBusTransactionContext transaction = receiver.createTransaction();
            receiver.complete(message, complete(transaction));
            sender.sendMessage(text(message.getBody() + " moved"), transaction);
            receiver.commitTransaction(transaction);
        }
        s.gone();
        same(bodies(take(s.receiver(partner), 2)), List.of("work moved", "more moved"), "at the other queue");
        return "";
    }

    private static String crossEntityRollback(Steps s) {
        String partner = partner(s, "transaction/cross-entity-rollback");
        s.send("work");
        ServiceBusClientBuilder builder = s.builder(Duration.ofSeconds(12)).enableCrossEntityTransactions();
        ServiceBusReceiverClient receiver = receiver(s, builder, s.queue);
        ServiceBusSenderClient sender = s.keep(builder.sender().queueName(partner).buildClient());
        ServiceBusReceivedMessage message = takeOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.complete(message, complete(transaction));
        sender.sendMessage(text("never"), transaction);
        receiver.rollbackTransaction(transaction);
        same(bodies(take(s.receiver(), 1)), List.of("work"), "it comes back when the lock ends");
        sees(s.receiver(partner), 10);
        return "";
    }

    private static String schedule(Steps s) {
        ServiceBusSenderClient sender = s.sender();
        OffsetDateTime later = OffsetDateTime.now().plusHours(1);
        ServiceBusTransactionContext transaction = sender.createTransaction();
        long number = sender.scheduleMessage(text("later"), later, transaction);
        sees(s.receiver(), 10);
        sender.commitTransaction(transaction);
        List<ServiceBusReceivedMessage> seen = peek(s.receiver(), 10, 1);
        same(bodies(seen), List.of("later"), "scheduled");
        same(seen.get(0).getSequenceNumber(), number, "its number");
        sender.cancelScheduledMessage(number);
        s.gone();

        transaction = sender.createTransaction();
        sender.scheduleMessage(text("never"), later, transaction);
        sender.rollbackTransaction(transaction);
        s.gone();
        return "";
    }

    private static String lockLost(Steps s) throws Exception {
        s.send("work");
        ServiceBusReceiverClient receiver = s.receiver();
        ServiceBusSenderClient sender = s.sender();
        ServiceBusReceivedMessage message = takeOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.complete(message, complete(transaction));
        sender.sendMessage(text("never"), transaction);
        TimeUnit.MILLISECONDS.sleep(s.lock.toMillis() + 500);
        String why = fails("a refused commit", t -> t instanceof AmqpException || t.getMessage().contains("rollback"),
            () -> receiver.commitTransaction(transaction));
        check(why.contains("rollback") || why.contains("rolled back"), "the reason is not told: " + why);
        same(bodies(peek(s.receiver(), 10, 1)), List.of("work"), "all or nothing");
        return why;
    }
}
