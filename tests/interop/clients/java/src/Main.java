package interop;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import reactor.core.publisher.Mono;

/** azure-messaging-servicebus against the broker. Scenario names: runner/scenarios.py. */
public final class Main {
    private static final ServiceBusFailureReason NOT_FOUND = ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
    private static final ServiceBusFailureReason UNAUTHORIZED = ServiceBusFailureReason.UNAUTHORIZED;

    private final Report report;
    private final String queue;

    private Main(Report report) {
        this.report = report;
        this.queue = report.text("queue");
    }

    public static void main(String[] arguments) throws Exception {
        Report report = new Report(arguments[0]);
        System.setProperty("javax.net.ssl.trustStore", report.text("truststore"));
        System.setProperty("javax.net.ssl.trustStorePassword", report.text("truststore_password"));
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
        report.run(new Main(report).scenarios());
    }

    private Map<String, Callable<String>> scenarios() {
        Map<String, Callable<String>> all = new HashMap<>();
        all.put("connect-tcp/sender", byString("emulator", NOT_FOUND, this::useSender));
        all.put("connect-tcp/receiver", byString("emulator", NOT_FOUND, this::useReceiver));
        all.put("connect-tcp/subscription", byString("emulator", NOT_FOUND, this::useSubscription));
        all.put("connect-tcp/session", byString("emulator", NOT_FOUND, this::useSession));
        all.put("connect-tls/trusted", () -> expect(NOT_FOUND, useSender(secure(report.broker("main")))));
        all.put("connect-websocket/wss", () -> expect(NOT_FOUND,
            useSender(secure(report.broker("main")).transportType(AmqpTransportType.AMQP_WEB_SOCKETS))));
        all.put("wrong-key/key", byString("wrong_key", UNAUTHORIZED, this::useSender));
        all.put("wrong-key/rule", byString("wrong_rule", UNAUTHORIZED, this::useSender));
        all.put("wrong-key/expired-sas", byString("sas_expired", UNAUTHORIZED, this::useSender));
        all.put("wrong-key/other-entity", byString("sas_other_entity", UNAUTHORIZED, this::useSender));
        all.put("wrong-key/malformed-sas", byString("sas_malformed", UNAUTHORIZED, this::useSender));
        all.put("sas-string/namespace", byString("sas_namespace", NOT_FOUND, this::useSender));
        all.put("sas-string/entity", byString("sas_entity", NOT_FOUND, this::useSender));
        all.put("jwt/hs256", byJwt("hs256", NOT_FOUND));
        all.put("jwt/rs256", byJwt("rs256", NOT_FOUND));
        all.put("jwt/bad-signature", byJwt("bad-signature", UNAUTHORIZED));
        all.put("jwt/expired", byJwt("expired", UNAUTHORIZED));
        all.put("reconnect/restart", this::restart);
        Map<String, Steps.Body> withQueues = new HashMap<>();
        Queues.register(withQueues);
        Sessions.register(withQueues);
        Partitions.register(withQueues);
        Topics.register(withQueues);
        Rules.register(withQueues);
        Transactions.register(withQueues);
        Administration.register(report, all);
        AdminAccess.register(report, all);
        AdminForward.register(report, all);
        AdminCounts.register(report, all);
        withQueues.forEach((name, body) -> all.put(name, () -> {
            try (Steps steps = new Steps(report, name)) {
                return body.run(steps);
            }
        }));
        return all;
    }

    // Each of these opens one link to an entity that does not exist.
    private Runnable useSender(ServiceBusClientBuilder builder) {
        return () -> {
            try (ServiceBusSenderClient sender = builder.sender().queueName(queue).buildClient()) {
                sender.sendMessage(new ServiceBusMessage("x"));
            }
        };
    }

    private Runnable useReceiver(ServiceBusClientBuilder builder) {
        return () -> receive(() -> builder.receiver().queueName(queue).buildAsyncClient());
    }

    private Runnable useSubscription(ServiceBusClientBuilder builder) {
        return () -> receive(() -> builder.receiver().topicName(report.text("topic"))
            .subscriptionName(report.text("subscription")).buildAsyncClient());
    }

    private Runnable useSession(ServiceBusClientBuilder builder) {
        return () -> {
            try (ServiceBusSessionReceiverClient sessions = builder.sessionReceiver().queueName(queue).buildClient()) {
                sessions.acceptSession("session-1").close();
            }
        };
    }

    // The synchronous receiver hides the reason behind "the receiver client is terminated".
    private static void receive(Supplier<ServiceBusReceiverAsyncClient> make) {
        try (ServiceBusReceiverAsyncClient receiver = make.get()) {
            receiver.receiveMessages().blockFirst(Duration.ofSeconds(10));
        }
    }

    private static ServiceBusClientBuilder builder(int retries) {
        return new ServiceBusClientBuilder().retryOptions(new AmqpRetryOptions().setMaxRetries(retries)
            .setDelay(Duration.ofMillis(400)).setMaxDelay(Duration.ofSeconds(1)).setTryTimeout(Duration.ofSeconds(8)));
    }

    private static String endpoint(JsonNode broker) {
        return "https://" + broker.get("host").asText() + ":" + broker.get("port").asInt();
    }

    // Without UseDevelopmentEmulator the port of the string is dropped; the custom endpoint has it.
    private static ServiceBusClientBuilder secure(JsonNode broker) {
        return builder(0).connectionString(broker.get("tls_without_port").asText()).customEndpointAddress(endpoint(broker));
    }

    private Callable<String> byString(String which, ServiceBusFailureReason reason,
        Function<ServiceBusClientBuilder, Runnable> use) {
        return () -> expect(reason,
            use.apply(builder(0).connectionString(report.broker("main").get(which).asText())));
    }

    private Callable<String> byJwt(String which, ServiceBusFailureReason reason) {
        TokenCredential credential = request -> Mono.just(
            new AccessToken(report.context.get("jwt").get(which).asText(), OffsetDateTime.now().plusHours(1)));
        return () -> {
            JsonNode broker = report.broker("jwt");
            return expect(reason, useSender(builder(0).credential(broker.get("host").asText(), credential)
                .customEndpointAddress(endpoint(broker))));
        };
    }

    private static String expect(ServiceBusFailureReason reason, Runnable use) {
        try {
            use.run();
        } catch (RuntimeException e) {
            for (Throwable t = e; t != null; t = t.getCause()) {
                if (t instanceof ServiceBusException) {
                    ServiceBusException found = (ServiceBusException) t;
                    if (found.getReason().equals(reason)) {
                        return found.getReason() + ": " + found.getMessage();
                    }
                    throw new IllegalStateException("expected " + reason + ", got " + found.getReason(), e);
                }
                // Accepting a session throws the inner exception as it is.
                if (t instanceof AmqpException && reason.equals(NOT_FOUND)
                    && ((AmqpException) t).getErrorCondition() == AmqpErrorCondition.NOT_FOUND) {
                    return t.toString();
                }
            }
            throw new IllegalStateException("expected " + reason + ", got " + e, e);
        }
        throw new IllegalStateException("expected " + reason + ", but it worked");
    }

    private String restart() throws Exception {
        ServiceBusClientBuilder builder = builder(8).connectionString(report.broker("restart").get("emulator").asText());
        try (ServiceBusSenderClient sender = builder.sender().queueName(queue).buildClient()) {
            Runnable use = () -> sender.sendMessage(new ServiceBusMessage("x"));
            expect(NOT_FOUND, use);
            report.ask("stop", "restart");
            CompletableFuture<String> during = CompletableFuture.runAsync(use).handle((nothing, error) -> String.valueOf(error));
            TimeUnit.SECONDS.sleep(1);
            report.ask("start", "restart");
            String outcome = during.get(15, TimeUnit.SECONDS);
            expect(NOT_FOUND, use);
            return "during: " + outcome;
        }
    }
}
