package interop;

import static interop.Steps.check;
import static interop.Steps.same;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceExistsException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpPipelineNextPolicy;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.UrlBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.EntityStatus;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.MessagingSku;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import com.fasterxml.jackson.databind.JsonNode;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import reactor.core.publisher.Mono;

/** What ServiceBusAdministrationClient does, against entities of its own. */
final class Administration {
    private final Report report;

    private Administration(Report report) {
        this.report = report;
    }

    static void register(Report report, Map<String, Callable<String>> all) {
        Administration it = new Administration(report);
        all.put("admin/namespace", it::namespace);
        all.put("admin/queue", it::queue);
        all.put("admin/queue-update", it::queueUpdate);
        all.put("admin/topic", it::topic);
        all.put("admin/subscription", it::subscription);
        all.put("admin/rules", it::rules);
        all.put("admin/list", it::list);
        all.put("admin/runtime", it::runtime);
        all.put("admin/partitioned", it::partitioned);
        all.put("admin/used", it::used);
        all.put("admin/deleted-link", it::deletedLink);
        all.put("admin/disabled", it::disabled);
        all.put("admin/wrong-key", it::wrongKey);
        all.put("admin/missing", it::missing);
        all.put("admin/exchange", it::exchange);
        all.put("admin/methods", () -> new AdminMethods(builder(report, "tls").buildClient(), "methods").tour());
        all.put("admin/async-methods",
            () -> new AdminMethods(builder(report, "tls").buildAsyncClient(), "async-methods").tour());
        all.put("admin-restart/kept", it::restart);
    }

    /** The SDK drops the port of the connection string and would ask 443: this puts it back. */
    private static final class Port implements HttpPipelinePolicy {
        private final int port;

        Port(int port) {
            this.port = port;
        }

        @Override
        public Mono<HttpResponse> process(HttpPipelineCallContext context, HttpPipelineNextPolicy next) {
            try {
                context.getHttpRequest().setUrl(
                    UrlBuilder.parse(context.getHttpRequest().getUrl()).setPort(port).toUrl());
            } catch (MalformedURLException e) {
                return Mono.error(e);
            }
            return next.process();
        }
    }

    /** Of a client of this broker that still needs to be told who it is; nothing is retried. */
    static ServiceBusAdministrationClientBuilder builder(JsonNode broker) {
        return new ServiceBusAdministrationClientBuilder().addPolicy(new Port(broker.get("port").asInt()))
            .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ZERO)));
    }

    static ServiceBusAdministrationClientBuilder builder(Report report, String which) {
        JsonNode broker = report.broker("admin");
        return builder(broker).connectionString(broker.get(which).asText());
    }

    private ServiceBusAdministrationClient connected(String which) {
        return builder(report, which).buildClient();
    }

    private ServiceBusAdministrationClient connected() {
        return connected("tls");
    }

    static ServiceBusClientBuilder messages(String connectionString) {
        return new ServiceBusClientBuilder()
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(10)))
            .connectionString(connectionString);
    }

    private ServiceBusClientBuilder messages() {
        return messages(report.broker("admin").get("emulator").asText());
    }

    static String named(String name) {
        return "java-admin-" + name;
    }

    private void send(String queue, ServiceBusMessage... all) {
        try (ServiceBusSenderClient sender = messages().sender().queueName(queue).buildClient()) {
            for (ServiceBusMessage message : all) {
                sender.sendMessage(message);
            }
        }
    }

    static List<String> taken(ServiceBusReceiverClient receiver, int count) {
        List<String> all = new ArrayList<>();
        while (all.size() < count) {
            int before = all.size();
            receiver.receiveMessages(count - all.size(), Duration.ofSeconds(5)).forEach(m -> {
                all.add(m.getBody().toString());
                receiver.complete(m);
            });
            check(all.size() > before, all.size() + " of " + count + " messages came");
        }
        return all;
    }

    static <T extends Exception> String fails(Class<T> kind, Runnable action, String text) {
        try {
            action.run();
        } catch (RuntimeException e) {
            check(kind.isInstance(e), "expected " + kind.getSimpleName() + ", got " + e);
            check(String.valueOf(e.getMessage()).contains(text), "expected '" + text + "' in: " + e.getMessage());
            return e.getMessage();
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", but it worked");
    }

    private String namespace() {
        var found = connected().getNamespaceProperties();
        same(found.getName(), "sbemulatorns", "name");
        same(found.getMessagingSku(), MessagingSku.PREMIUM, "sku");
        check(found.getCreatedTime().getYear() > 2020, "created " + found.getCreatedTime());
        return "";
    }

    private static CreateQueueOptions queueShape() {
        return new CreateQueueOptions().setLockDuration(Duration.ofSeconds(30)).setMaxSizeInMegabytes(2048)
            .setDuplicateDetectionRequired(true).setSessionRequired(true)
            .setDefaultMessageTimeToLive(Duration.ofDays(3)).setDeadLetteringOnMessageExpiration(true)
            .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(5)).setMaxDeliveryCount(7)
            .setBatchedOperationsEnabled(false).setAutoDeleteOnIdle(Duration.ofDays(10))
            .setUserMetadata("the <first> & \"best\"").setMaxMessageSizeInKilobytes(2048);
    }

    private static void hasQueueShape(QueueProperties found) {
        CreateQueueOptions shape = queueShape();
        same(found.getLockDuration(), shape.getLockDuration(), "lock");
        same(found.getMaxSizeInMegabytes(), 2048L, "size");
        same(found.isDuplicateDetectionRequired(), true, "duplicates");
        same(found.isSessionRequired(), true, "sessions");
        same(found.getDefaultMessageTimeToLive(), shape.getDefaultMessageTimeToLive(), "time to live");
        same(found.isDeadLetteringOnMessageExpiration(), true, "dead letters");
        same(found.getDuplicateDetectionHistoryTimeWindow(), Duration.ofMinutes(5), "window");
        same(found.getMaxDeliveryCount(), 7, "deliveries");
        same(found.isBatchedOperationsEnabled(), false, "batched");
        same(found.getAutoDeleteOnIdle(), Duration.ofDays(10), "idle");
        same(found.getUserMetadata(), shape.getUserMetadata(), "metadata");
        same(found.getMaxMessageSizeInKilobytes(), 2048L, "message size");
        same(found.getStatus(), EntityStatus.ACTIVE, "status");
    }

    private String queue() {
        var admin = connected();
        QueueProperties made = admin.createQueue(named("queue"), queueShape());
        same(made.getName(), named("queue"), "name");
        hasQueueShape(made);
        hasQueueShape(admin.getQueue(named("queue")));
        same(admin.getQueueExists(named("queue")), true, "exists");
        fails(ResourceExistsException.class, () -> admin.createQueue(named("queue")), "40900");
        admin.deleteQueue(named("queue"));
        same(admin.getQueueExists(named("queue")), false, "exists");
        fails(ResourceNotFoundException.class, () -> admin.getQueue(named("queue")), "");
        return "";
    }

    private String queueUpdate() {
        var admin = connected();
        QueueProperties made = admin.createQueue(named("queue-update"));
        same(made.getMaxDeliveryCount(), 10, "default");
        made.setLockDuration(Duration.ofSeconds(45)).setMaxDeliveryCount(3).setUserMetadata("after");
        QueueProperties changed = admin.updateQueue(made);
        same(changed.getLockDuration(), Duration.ofSeconds(45), "lock");
        same(admin.getQueue(named("queue-update")).getMaxDeliveryCount(), 3, "deliveries");
        same(admin.getQueue(named("queue-update")).getUserMetadata(), "after", "metadata");
        QueueRuntimeProperties times = admin.getQueueRuntimeProperties(named("queue-update"));
        check(times.getUpdatedAt().isAfter(times.getCreatedAt()), "UpdatedAt did not move");
        admin.deleteQueue(named("queue-update"));
        fails(ResourceNotFoundException.class, () -> admin.updateQueue(made), "40400");
        return "";
    }

    private static CreateTopicOptions topicShape() {
        return new CreateTopicOptions().setDefaultMessageTimeToLive(Duration.ofDays(2)).setMaxSizeInMegabytes(3072)
            .setDuplicateDetectionRequired(true).setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(2))
            .setBatchedOperationsEnabled(false).setUserMetadata("topic").setAutoDeleteOnIdle(Duration.ofDays(5));
    }

    private static void hasTopicShape(TopicProperties found) {
        same(found.getDefaultMessageTimeToLive(), Duration.ofDays(2), "time to live");
        same(found.getMaxSizeInMegabytes(), 3072L, "size");
        same(found.isDuplicateDetectionRequired(), true, "duplicates");
        same(found.getDuplicateDetectionHistoryTimeWindow(), Duration.ofMinutes(2), "window");
        same(found.isBatchedOperationsEnabled(), false, "batched");
        same(found.getUserMetadata(), "topic", "metadata");
        same(found.getAutoDeleteOnIdle(), Duration.ofDays(5), "idle");
    }

    private String topic() {
        var admin = connected();
        hasTopicShape(admin.createTopic(named("topic"), topicShape()));
        TopicProperties found = admin.getTopic(named("topic"));
        hasTopicShape(found);
        same(admin.updateTopic(found.setUserMetadata("changed")).getUserMetadata(), "changed", "updated");
        same(admin.getTopicExists(named("topic")), true, "exists");
        admin.createSubscription(named("topic"), "one");
        same(admin.getTopicRuntimeProperties(named("topic")).getSubscriptionCount(), 1, "subscriptions");
        admin.deleteTopic(named("topic"));
        same(admin.getTopicExists(named("topic")), false, "exists");
        same(admin.getSubscriptionExists(named("topic"), "one"), false, "its subscription");
        return "";
    }

    private static CreateSubscriptionOptions subscriptionShape() {
        return new CreateSubscriptionOptions().setLockDuration(Duration.ofSeconds(20)).setSessionRequired(true)
            .setDefaultMessageTimeToLive(Duration.ofDays(4)).setDeadLetteringOnMessageExpiration(true)
            .setEnableDeadLetteringOnFilterEvaluationExceptions(false).setMaxDeliveryCount(5)
            .setBatchedOperationsEnabled(false).setUserMetadata("sub").setAutoDeleteOnIdle(Duration.ofDays(6));
    }

    private static void hasSubscriptionShape(SubscriptionProperties found) {
        same(found.getLockDuration(), Duration.ofSeconds(20), "lock");
        same(found.isSessionRequired(), true, "sessions");
        same(found.getDefaultMessageTimeToLive(), Duration.ofDays(4), "time to live");
        same(found.isDeadLetteringOnMessageExpiration(), true, "dead letters");
        same(found.isDeadLetteringOnFilterEvaluationExceptions(), false, "dead letters of filters");
        same(found.getMaxDeliveryCount(), 5, "deliveries");
        same(found.isBatchedOperationsEnabled(), false, "batched");
        same(found.getUserMetadata(), "sub", "metadata");
        same(found.getAutoDeleteOnIdle(), Duration.ofDays(6), "idle");
    }

    private String subscription() {
        var admin = connected();
        String on = named("subscription");
        admin.createTopic(on);
        hasSubscriptionShape(admin.createSubscription(on, "s", subscriptionShape()));
        SubscriptionProperties found = admin.getSubscription(on, "s");
        same(found.getSubscriptionName(), "s", "name");
        same(found.getTopicName(), on, "topic");
        hasSubscriptionShape(found);
        same(admin.updateSubscription(found.setMaxDeliveryCount(9)).getMaxDeliveryCount(), 9, "updated");
        admin.createSubscription(on, "a", "first", new CreateSubscriptionOptions(),
            new CreateRuleOptions(new SqlRuleFilter("color = 'red'")));
        same(admin.listRules(on, "a").stream().map(RuleProperties::getName).collect(Collectors.toList()),
            List.of("first"), "default rule");
        same(admin.listSubscriptions(on).stream().map(SubscriptionProperties::getSubscriptionName)
            .collect(Collectors.toList()), List.of("a", "s"), "list");
        same(admin.getSubscriptionRuntimeProperties(on, "s").getTotalMessageCount(), 0L, "count");
        same(admin.getSubscriptionExists(on, "s"), true, "exists");
        fails(ResourceExistsException.class, () -> admin.createSubscription(on, "s"), "40900");
        admin.deleteSubscription(on, "a");
        same(admin.getSubscriptionExists(on, "a"), false, "exists");
        fails(ResourceNotFoundException.class, () -> admin.createSubscription(named("no-such"), "s"), "40400");
        admin.deleteTopic(on);
        return "";
    }

    private String rules() {
        var admin = connected();
        String on = named("rules");
        admin.createTopic(on);
        admin.createSubscription(on, "s");
        check(admin.getRule(on, "s", "$Default").getFilter() instanceof TrueRuleFilter, "default filter");
        SqlRuleFilter sql = new SqlRuleFilter("price > @limit");
        sql.getParameters().put("@limit", 10);
        RuleProperties made = admin.createRule(on, "sql", "s",
            new CreateRuleOptions(sql).setAction(new SqlRuleAction("SET seen = 1")));
        same(((SqlRuleFilter) made.getFilter()).getSqlExpression(), "price > @limit", "expression");
        same(((SqlRuleAction) made.getAction()).getSqlExpression(), "SET seen = 1", "action");
        CorrelationRuleFilter correlation = new CorrelationRuleFilter("c").setMessageId("m").setTo("t").setReplyTo("r")
            .setLabel("l").setSessionId("s").setReplyToSessionId("rs").setContentType("ct");
        correlation.getProperties().put("color", "red");
        admin.createRule(on, "correlation", "s", new CreateRuleOptions(correlation));
        CorrelationRuleFilter found = (CorrelationRuleFilter) admin.getRule(on, "s", "correlation").getFilter();
        same(List.of(found.getCorrelationId(), found.getMessageId(), found.getTo(), found.getReplyTo(), found.getLabel(),
            found.getSessionId(), found.getReplyToSessionId(), found.getContentType()),
            List.of("c", "m", "t", "r", "l", "s", "rs", "ct"), "correlation");
        same(found.getProperties().get("color"), "red", "properties");
        admin.createRule(on, "never", "s", new CreateRuleOptions(new FalseRuleFilter()));
        check(admin.getRule(on, "s", "never").getFilter() instanceof FalseRuleFilter, "false filter");
        same(admin.listRules(on, "s").stream().map(RuleProperties::getName).collect(Collectors.toList()),
            List.of("$Default", "correlation", "never", "sql"), "list");
        RuleProperties changed = admin.updateRule(on, "s", made.setFilter(new SqlRuleFilter("price < 5")));
        same(((SqlRuleFilter) changed.getFilter()).getSqlExpression(), "price < 5", "updated");
        fails(ResourceExistsException.class,
            () -> admin.createRule(on, "SQL", "s", new CreateRuleOptions(new TrueRuleFilter())), "40900");
        fails(HttpResponseException.class,
            () -> admin.createRule(on, "bad", "s", new CreateRuleOptions(new SqlRuleFilter("price >"))), "40000");
        admin.deleteRule(on, "s", "$Default");
        fails(ResourceNotFoundException.class, () -> admin.getRule(on, "s", "$Default"), "");
        ServiceBusMessage cheap = new ServiceBusMessage("cheap");
        cheap.getApplicationProperties().put("price", 1);
        ServiceBusMessage dear = new ServiceBusMessage("dear");
        dear.getApplicationProperties().put("price", 99);
        try (ServiceBusSenderClient sender = messages().sender().topicName(on).buildClient()) {
            sender.sendMessage(dear);
            sender.sendMessage(cheap);
        }
        try (ServiceBusReceiverClient receiver =
                 messages().receiver().topicName(on).subscriptionName("s").buildClient()) {
            same(taken(receiver, 1), List.of("cheap"), "what the updated rule lets through");
        }
        admin.deleteTopic(on);
        return "";
    }

    private String list() {
        var admin = connected();
        List<String> wanted = IntStream.range(0, 205).mapToObj(i -> String.format("%s-%03d", named("list"), i))
            .collect(Collectors.toList());
        wanted.forEach(admin::createQueue);
        same(admin.listQueues().stream().map(QueueProperties::getName).filter(n -> n.startsWith(named("list-")))
            .collect(Collectors.toList()), wanted, "queues");
        admin.createTopic(named("topics"));
        check(admin.listTopics().stream().anyMatch(t -> t.getName().equals(named("topics"))), "topics");
        wanted.forEach(admin::deleteQueue);
        admin.deleteTopic(named("topics"));
        return "";
    }

    private String runtime() {
        var admin = connected();
        String on = named("runtime");
        admin.createQueue(on);
        try (ServiceBusSenderClient sender = messages().sender().queueName(on).buildClient();
             ServiceBusReceiverClient receiver = messages().receiver().queueName(on).buildClient()) {
            for (int i = 0; i < 5; ++i) {
                sender.sendMessage(new ServiceBusMessage("x".repeat(100)));
            }
            sender.scheduleMessage(new ServiceBusMessage("later"), OffsetDateTime.now().plusHours(1));
            ServiceBusReceivedMessage one = receiver.receiveMessages(1, Duration.ofSeconds(10)).iterator().next();
            receiver.deadLetter(one);
            ServiceBusReceivedMessage two = receiver.receiveMessages(1, Duration.ofSeconds(10)).iterator().next();
            receiver.defer(two);
        }
        QueueRuntimeProperties found = admin.getQueueRuntimeProperties(on);
        same(List.of(found.getActiveMessageCount(), found.getDeadLetterMessageCount(), found.getScheduledMessageCount(),
            found.getTransferMessageCount(), found.getTransferDeadLetterMessageCount()), List.of(4, 1, 1, 0, 0), "counts");
        same(found.getTotalMessageCount(), 6L, "total");
        check(found.getSizeInBytes() > 500, "size " + found.getSizeInBytes());
        check(Duration.between(found.getAccessedAt(), OffsetDateTime.now()).abs().toMinutes() < 1, "accessed");
        admin.deleteQueue(on);
        return "";
    }

    private String partitioned() {
        var admin = connected();
        String on = named("partitioned");
        QueueProperties made = admin.createQueue(on, new CreateQueueOptions().setPartitioningEnabled(true));
        same(made.getMaxSizeInMegabytes(), 16384L, "size of all partitions");
        same(admin.updateQueue(made.setMaxDeliveryCount(4)).getMaxDeliveryCount(), 4, "updated");
        send(on, IntStream.range(0, 20).mapToObj(i -> new ServiceBusMessage("x")).toArray(ServiceBusMessage[]::new));
        same(admin.getQueueRuntimeProperties(on).getActiveMessageCount(), 20, "sum of the partitions");
        admin.deleteQueue(on);
        return "";
    }

    private String used() {
        var admin = connected();
        String on = named("used/with/slashes");
        same(admin.createQueue(on).getName(), on, "name");
        send(on, new ServiceBusMessage("hello"));
        try (ServiceBusReceiverClient receiver = messages().receiver().queueName(on).buildClient()) {
            same(taken(receiver, 1), List.of("hello"), "body");
        }
        admin.deleteQueue(on);
        return "";
    }

    private String deletedLink() {
        var admin = connected();
        String on = named("deleted");
        admin.createQueue(on);
        try (ServiceBusSenderClient sender = messages().sender().queueName(on).buildClient()) {
            sender.sendMessage(new ServiceBusMessage("x"));
            admin.deleteQueue(on);
            return fails(ServiceBusException.class, () -> sender.sendMessage(new ServiceBusMessage("y")), "");
        }
    }

    private String disabled() throws InterruptedException {
        var admin = connected();
        String on = named("disabled");
        QueueProperties made = admin.createQueue(on);
        try (ServiceBusSenderClient sender = messages().sender().queueName(on).buildClient()) {
            sender.sendMessage(new ServiceBusMessage("x"));
            same(admin.updateQueue(made.setStatus(EntityStatus.SEND_DISABLED)).getStatus(), EntityStatus.SEND_DISABLED,
                "status");
            Thread.sleep(500); // the end of the link comes on another connection than the answer
            fails(ServiceBusException.class, () -> sender.sendMessage(new ServiceBusMessage("y")), "");
        }
        admin.updateQueue(made.setStatus(EntityStatus.ACTIVE));
        send(on, new ServiceBusMessage("z"));
        try (ServiceBusReceiverClient receiver = messages().receiver().queueName(on).buildClient()) {
            same(taken(receiver, 2), List.of("x", "z"), "what came");
        }
        admin.deleteQueue(on);
        return "";
    }

    private String wrongKey() {
        fails(ClientAuthenticationException.class, () -> connected("admin_wrong_key").getQueue("x"), "40103");
        fails(ClientAuthenticationException.class,
            () -> connected("admin_send_only").createQueue(named("never")), "40100");
        same(connected("admin_send_only").getNamespaceProperties().getName(), "sbemulatorns", "any right");
        return "";
    }

    private String missing() {
        var admin = connected();
        String nothing = named("nothing");
        List<Runnable> all = List.of(() -> admin.getQueue(nothing), () -> admin.getTopic(nothing),
            () -> admin.getQueueRuntimeProperties(nothing), () -> admin.getTopicRuntimeProperties(nothing),
            () -> admin.deleteQueue(nothing), () -> admin.deleteTopic(nothing),
            () -> admin.getSubscription(nothing, "s"), () -> admin.deleteSubscription(nothing, "s"),
            () -> admin.getRule(nothing, "s", "r"), () -> admin.deleteRule(nothing, "s", "r"),
            () -> admin.listSubscriptions(nothing).stream().count(), () -> admin.listRules(nothing, "s").stream().count());
        for (Runnable action : all) {
            fails(ResourceNotFoundException.class, action, "");
        }
        fails(HttpResponseException.class,
            () -> admin.createQueue(nothing, new CreateQueueOptions().setMaxSizeInMegabytes(77)), "40000");
        return "";
    }

    private java.net.http.HttpResponse<String> document(String method, String name, String body) throws Exception {
        var broker = report.broker("admin");
        var uri = URI.create("http://" + broker.get("host").asText() + ":" + broker.get("port").asInt() + "/" + name);
        var request = HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(10))
            .header("Authorization", broker.get("tokens").get("namespace").asText())
            .header("Content-Type", "application/json").header("Accept", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        return HttpClient.newHttpClient().send(request, java.net.http.HttpResponse.BodyHandlers.ofString());
    }

    /** An exchange is made by a document; to this client it is a topic. */
    private String exchange() throws Exception {
        var admin = connected();
        String on = named("exchange");
        same(document("PUT", on, "{\"Type\": \"Fanout\", \"Subscriptions\": [{\"Name\": \"s\", \"PrefetchCount\": 9}]}")
            .statusCode(), 201, "made");
        check(admin.listTopics().stream().anyMatch(t -> t.getName().equals(on)), "it is not listed");
        TopicProperties found = admin.getTopic(on);
        same(admin.listSubscriptions(on).stream().map(SubscriptionProperties::getSubscriptionName)
            .collect(Collectors.toList()), List.of("s"), "subscriptions");
        same(admin.listRules(on, "s").stream().count(), 0L, "rules");
        fails(ResourceExistsException.class, () -> admin.createTopic(on), "40900");
        admin.updateTopic(found.setDefaultMessageTimeToLive(Duration.ofDays(1)));
        admin.updateSubscription(admin.getSubscription(on, "s").setMaxDeliveryCount(4));
        admin.createSubscription(on, "other");
        String now = document("GET", on, "").body();
        for (String part : List.of("\"Type\":\"Fanout\"", "\"DefaultMessageTimeToLive\":\"P1D\"", "\"PrefetchCount\":9",
            "\"MaxDeliveryCount\":4")) {
            check(now.contains(part), "no " + part + " in " + now);
        }
        try (ServiceBusSenderClient sender = messages().sender().topicName(on).buildClient();
             ServiceBusReceiverClient receiver =
                 messages().receiver().topicName(on).subscriptionName("other").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("to all"));
            same(taken(receiver, 1), List.of("to all"), "routed");
        }
        admin.deleteTopic(on);
        same(document("GET", on, "").statusCode(), 404, "gone");
        return "";
    }

    private String restart() throws Exception {
        String on = named("restart");
        var admin = connected();
        admin.createQueue(on, queueShape());
        admin.createTopic(on + "-t", topicShape());
        admin.createSubscription(on + "-t", "s", subscriptionShape());
        report.ask("stop", "admin");
        report.ask("start", "admin");
        var again = connected();
        hasQueueShape(again.getQueue(on));
        hasTopicShape(again.getTopic(on + "-t"));
        hasSubscriptionShape(again.getSubscription(on + "-t", "s"));
        again.deleteQueue(on);
        again.deleteTopic(on + "-t");
        return "";
    }
}
