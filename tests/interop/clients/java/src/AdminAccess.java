package interop;

import static interop.Administration.fails;
import static interop.Administration.named;
import static interop.Steps.check;
import static interop.Steps.same;

import com.azure.core.credential.AccessToken;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationAsyncClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.AccessRights;
import com.azure.messaging.servicebus.administration.models.AuthorizationRule;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import reactor.core.publisher.Mono;

/** Authorization rules on entities, the rotation of their keys, and bearer tokens, with administration clients. */
final class AdminAccess {
    static final List<AccessRights> ALL = List.of(AccessRights.MANAGE, AccessRights.SEND, AccessRights.LISTEN);

    private final Report report;

    private AdminAccess(Report report) {
        this.report = report;
    }

    static void register(Report report, Map<String, Callable<String>> all) {
        AdminAccess it = new AdminAccess(report);
        all.put("admin/access-rules", it::accessRules);
        all.put("admin/key-rotation", it::keyRotation);
        all.put("admin/bearer", it::bearer);
    }

    static SharedAccessAuthorizationRule rule(String name, String primary, String secondary, List<AccessRights> rights) {
        return new SharedAccessAuthorizationRule(name, primary, secondary, rights);
    }

    private static List<List<Object>> shown(List<AuthorizationRule> rules) {
        return rules.stream().map(r -> List.<Object>of(r.getKeyName(), r.getAccessRights(), r.getPrimaryKey(),
            r.getSecondaryKey())).collect(Collectors.toList());
    }

    private static String keyed(Report report, String name, String key) {
        JsonNode broker = report.broker("admin");
        return "Endpoint=sb://" + broker.get("host").asText() + ":" + broker.get("port").asInt()
            + ";SharedAccessKeyName=" + name + ";SharedAccessKey=" + key + ";";
    }

    /** The administration client that has the key of an entity's rule. */
    static ServiceBusAdministrationClient admin(Report report, String name, String key) {
        return Administration.builder(report.broker("admin")).connectionString(keyed(report, name, key)).buildClient();
    }

    private ServiceBusClientBuilder data(String name, String key) {
        return Administration.messages(keyed(report, name, key) + "UseDevelopmentEmulator=true;");
    }

    private static void send(ServiceBusClientBuilder builder, String on, String body) {
        try (ServiceBusSenderClient sender = builder.sender().queueName(on).buildClient()) {
            sender.sendMessage(new ServiceBusMessage(body));
        }
    }

    private static List<String> receive(ServiceBusClientBuilder builder, String on, int count) {
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(on).buildClient()) {
            return Administration.taken(receiver, count);
        }
    }

    private static void sendRefused(ServiceBusClientBuilder builder, String on) {
        Steps.fails(ServiceBusFailureReason.UNAUTHORIZED, () -> send(builder, on, "never"));
    }

    // The synchronous receiver hides the reason behind "the receiver client is terminated".
    private static void receiveRefused(ServiceBusClientBuilder builder, String on) {
        Steps.fails(ServiceBusFailureReason.UNAUTHORIZED, () -> {
            try (ServiceBusReceiverAsyncClient receiver = builder.receiver().queueName(on).buildAsyncClient()) {
                receiver.receiveMessages().blockFirst(Duration.ofSeconds(10));
            }
        });
    }

    private String accessRules() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("access");
        String topic = named("access-t");
        CreateQueueOptions options = new CreateQueueOptions();
        options.getAuthorizationRules().add(
            rule("writer", "the-key-of-the-writer", "another-key-of-it", List.of(AccessRights.SEND)));
        // This client makes the keys that it is not given.
        SharedAccessAuthorizationRule owner = new SharedAccessAuthorizationRule("owner", ALL);
        options.getAuthorizationRules().add(owner);
        QueueProperties made = admin.createQueue(on, options);
        List<List<Object>> wanted = List.of(
            List.of("writer", List.of(AccessRights.SEND), "the-key-of-the-writer", "another-key-of-it"),
            List.of("owner", ALL, owner.getPrimaryKey(), owner.getSecondaryKey()));
        same(shown(made.getAuthorizationRules()), wanted, "as they were set");
        same(shown(admin.getQueue(on).getAuthorizationRules()), wanted, "read again");
        same(admin.listQueues().stream().filter(q -> q.getName().equals(on))
            .map(q -> shown(q.getAuthorizationRules())).collect(Collectors.toList()), List.of(wanted), "listed");
        AuthorizationRule writer = admin.getQueue(on).getAuthorizationRules().get(0);
        check(Duration.between(writer.getCreatedAt(), OffsetDateTime.now()).abs().toMinutes() < 2,
            "created " + writer.getCreatedAt());
        send(data("writer", "the-key-of-the-writer"), on, "written");
        receiveRefused(data("writer", "the-key-of-the-writer"), on);
        same(receive(data("owner", owner.getSecondaryKey()), on, 1), List.of("written"), "with a key of the client's");
        fails(ClientAuthenticationException.class,
            () -> admin(report, "writer", "the-key-of-the-writer").getQueue(on), "40100");

        CreateTopicOptions about = new CreateTopicOptions();
        about.getAuthorizationRules().add(rule("reader", "one", "two", List.of(AccessRights.LISTEN)));
        TopicProperties published = admin.createTopic(topic, about);
        same(shown(published.getAuthorizationRules()),
            List.of(List.of("reader", List.of(AccessRights.LISTEN), "one", "two")), "of a topic");
        published.getAuthorizationRules().clear();
        published.getAuthorizationRules().add(
            rule("reader", "one", "two", List.of(AccessRights.LISTEN, AccessRights.SEND)));
        admin.updateTopic(published);
        same(shown(admin.getTopic(topic).getAuthorizationRules()),
            List.of(List.of("reader", List.of(AccessRights.LISTEN, AccessRights.SEND), "one", "two")), "changed");
        made.getAuthorizationRules().clear();
        same(shown(admin.updateQueue(made).getAuthorizationRules()), List.of(), "none any more");
        sendRefused(data("writer", "the-key-of-the-writer"), on);
        CreateQueueOptions half = new CreateQueueOptions();
        half.getAuthorizationRules().add(new SharedAccessAuthorizationRule("half", List.of(AccessRights.MANAGE)));
        fails(HttpResponseException.class, () -> admin.createQueue(named("never"), half), "40000");
        admin.deleteQueue(on);
        admin.deleteTopic(topic);
        return "";
    }

    private String keyRotation() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("rotation");
        CreateQueueOptions options = new CreateQueueOptions();
        options.getAuthorizationRules().add(rule("rotor", "first-key", "second-key", ALL));
        QueueProperties made = admin.createQueue(on, options);
        same(admin(report, "rotor", "first-key").getQueue(on).getName(), on, "the entity's key over HTTP");
        ServiceBusClientBuilder before = data("rotor", "first-key");
        try (ServiceBusSenderClient open = before.sender().queueName(on).buildClient()) {
            open.sendMessage(new ServiceBusMessage("one"));
            made.getAuthorizationRules().clear();
            made.getAuthorizationRules().add(rule("rotor", "third-key", "second-key", ALL));
            same(shown(admin.updateQueue(made).getAuthorizationRules()),
                List.of(List.of("rotor", ALL, "third-key", "second-key")), "rotated");
            receiveRefused(before, on); // a new link on the connection that is open
        }
        sendRefused(data("rotor", "first-key"), on);
        fails(ClientAuthenticationException.class, () -> admin(report, "rotor", "first-key").getQueue(on), "40103");
        send(data("rotor", "third-key"), on, "two");
        same(receive(data("rotor", "second-key"), on, 2), List.of("one", "two"), "with the secondary key");
        // The second one, by the client that holds the first.
        made.getAuthorizationRules().clear();
        made.getAuthorizationRules().add(rule("rotor", "third-key", "fourth-key", ALL));
        admin(report, "rotor", "third-key").updateQueue(made);
        sendRefused(data("rotor", "second-key"), on);
        send(data("rotor", "fourth-key"), on, "three");
        same(receive(data("rotor", "third-key"), on, 1), List.of("three"), "what came");
        admin.deleteQueue(on);
        return "";
    }

    private ServiceBusAdministrationClientBuilder bearing(String kind) {
        JsonNode broker = report.broker("jwt");
        return Administration.builder(broker).credential(broker.get("host").asText(), request -> Mono.just(
            new AccessToken(report.context.get("jwt").get(kind).asText(), OffsetDateTime.now().plusHours(1))));
    }

    private String bearer() {
        String on = named("bearer");
        String to = named("bearer-to");
        for (String kind : List.of("hs256", "rs256")) {
            var admin = bearing(kind).buildClient();
            admin.createQueue(to);
            QueueProperties made = admin.createQueue(on,
                new CreateQueueOptions().setForwardTo(to).setForwardDeadLetteredMessagesTo(to));
            check(made.getForwardTo().endsWith("/" + to), "forwardTo " + made.getForwardTo());
            same(admin.updateQueue(made.setMaxDeliveryCount(3)).getMaxDeliveryCount(), 3, "updated");
            same(admin.listQueues().stream().map(QueueProperties::getName).filter(n -> n.startsWith(on))
                .collect(Collectors.toList()), List.of(on, to), "listed");
            admin.deleteQueue(on);
            admin.deleteQueue(to);
        }
        Map.of("send-only", "40100", "expired", "40106", "other-audience", "40104", "bad-signature", "40103")
            .forEach((kind, code) -> {
                fails(ClientAuthenticationException.class, () -> bearing(kind).buildClient().createQueue(on), code);
                ServiceBusAdministrationAsyncClient other = bearing(kind).buildAsyncClient();
                fails(ClientAuthenticationException.class,
                    () -> other.createQueue(on).block(Duration.ofSeconds(10)), code);
            });
        same(bearing("send-only").buildClient().getNamespaceProperties().getName(), "sbemulatorns", "any right");
        return "";
    }
}
