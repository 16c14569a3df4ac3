package interop;

import static interop.Administration.named;
import static interop.Steps.check;
import static interop.Steps.same;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.TopicRuntimeProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** Counts, sizes and times that the administration client shows, compared with what is really there. */
final class AdminCounts {
    private final Report report;

    private AdminCounts(Report report) {
        this.report = report;
    }

    static void register(Report report, Map<String, Callable<String>> all) {
        AdminCounts it = new AdminCounts(report);
        all.put("admin/counts", it::counts);
        all.put("admin/transfer-counts", it::transferCounts);
    }

    private static void recent(OffsetDateTime moment, String what) {
        check(Duration.between(moment, OffsetDateTime.now()).abs().toMinutes() < 2, what + " " + moment);
    }

    private String counts() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("counts");
        admin.createTopic(on);
        admin.createSubscription(on, "a");
        admin.createSubscription(on, "b", "r", new CreateSubscriptionOptions(),
            new CreateRuleOptions(new SqlRuleFilter("n = 1")));
        ServiceBusClientBuilder messages = Administration.messages(report.broker("admin").get("emulator").asText());
        try (ServiceBusSenderClient sender = messages.sender().topicName(on).buildClient();
             ServiceBusReceiverClient receiver =
                 messages.receiver().topicName(on).subscriptionName("a").disableAutoComplete().buildClient()) {
            for (int n = 0; n < 4; ++n) {
                ServiceBusMessage message = new ServiceBusMessage("x".repeat(1000));
                message.getApplicationProperties().put("n", n);
                sender.sendMessage(message);
            }
            for (int i = 0; i < 2; ++i) {
                sender.scheduleMessage(new ServiceBusMessage("later"), OffsetDateTime.now().plusHours(1));
            }
            List<ServiceBusReceivedMessage> taken = Steps.take(receiver, 2);
            receiver.deadLetter(taken.get(0));
            receiver.defer(taken.get(1));
        }
        TopicRuntimeProperties topic = admin.getTopicRuntimeProperties(on);
        same(List.of(topic.getSubscriptionCount(), topic.getScheduledMessageCount()), List.of(2, 2), "of the topic");
        check(topic.getSizeInBytes() >= 4000 && topic.getSizeInBytes() < 8000, "size " + topic.getSizeInBytes());
        recent(topic.getCreatedAt(), "created");
        recent(topic.getAccessedAt(), "accessed");
        // A deferred message is an active one. This client lists no counts.
        Map.of("a", List.of(3, 1, 0, 0, 4), "b", List.of(1, 0, 0, 0, 1)).forEach((name, expected) -> {
            SubscriptionRuntimeProperties found = admin.getSubscriptionRuntimeProperties(on, name);
            same(List.of(found.getActiveMessageCount(), found.getDeadLetterMessageCount(), found.getTransferMessageCount(),
                found.getTransferDeadLetterMessageCount(), (int) found.getTotalMessageCount()), expected, name);
            recent(found.getCreatedAt(), "created");
        });
        recent(admin.getSubscriptionRuntimeProperties(on, "a").getAccessedAt(), "accessed");
        admin.deleteTopic(on);
        return "";
    }

    /** What the raw client left there before anybody came; see raw/counted.py. */
    private String transferCounts() {
        JsonNode broker = report.broker("counts");
        JsonNode counted = report.context.get("counted");
        var admin = Administration.builder(broker).connectionString(broker.get("tls").asText()).buildClient();
        QueueRuntimeProperties found = admin.getQueueRuntimeProperties(counted.get("queue").asText());
        List<Integer> wanted = new ArrayList<>();
        counted.get("counts").forEach(one -> wanted.add(one.asInt()));
        same(List.of(found.getActiveMessageCount(), found.getDeadLetterMessageCount(), found.getScheduledMessageCount(),
            found.getTransferMessageCount(), found.getTransferDeadLetterMessageCount()), wanted, "counts");
        same(found.getTotalMessageCount(), wanted.stream().mapToLong(Integer::longValue).sum(), "total");
        check(found.getSizeInBytes() > 0, "size");
        check(!found.getUpdatedAt().isBefore(found.getCreatedAt()) && !found.getAccessedAt().isBefore(found.getCreatedAt()),
            "times");
        return "";
    }
}
