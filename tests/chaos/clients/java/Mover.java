package chaos;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import java.util.TreeMap;

/**
 * azure-messaging-servicebus as a client of the chaos run: moves messages in transactions over several entities.
 *
 * <p>The SDK retries nothing: an answer that did not come is unknown, and the role connects again. What is committed is
 * known by the answer to the commit alone. Commands come on standard input: `quiet` changes nothing here, `stop` ends it.
 */
public final class Mover implements Runnable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration ANSWER = Duration.ofSeconds(8);
    private static volatile boolean stopped;

    private final JsonNode how;
    private final FileChannel history;
    private final String who;
    private final Random random;
    private final String connection;
    private final Map<String, Integer> troubles = new TreeMap<>();
    private int count;

    private Mover(JsonNode spec, JsonNode how, FileChannel history, int number) {
        this.how = how;
        this.history = history;
        who = spec.get("name").asText() + "-" + number;
        random = new Random((spec.get("seed").asText() + " " + who).hashCode());
        connection = spec.get("connection").asText();
    }

    private static long micros(Instant time) {
        return time.getEpochSecond() * 1_000_000 + time.getNano() / 1000;
    }

    private static ObjectNode line() {
        return JSON.createObjectNode();
    }

    /** A line is one write: others append to the same file. */
    private void say(String what, ObjectNode fields) {
        ObjectNode line = line().put("t", micros(Instant.now())).put("who", who).put("do", what);
        line.setAll(fields);
        try {
            synchronized (history) {
                history.write(ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.UTF_8)));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void run() {
        while (!stopped) {
            try {
                work();
            } catch (RuntimeException e) {
                troubles.merge(e.getClass().getSimpleName(), 1, Integer::sum);
                pause(100 + random.nextInt(300));
            }
        }
    }

    private static void pause(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void work() {
        ServiceBusClientBuilder builder = new ServiceBusClientBuilder().connectionString(connection)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(ANSWER)).enableCrossEntityTransactions();
        List<ServiceBusSenderClient> senders = new ArrayList<>();
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(how.get("from").asText())
            .disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
            for (JsonNode to : how.get("to")) {
                senders.add(to.asText().equals(how.get("topic").asText())
                    ? builder.sender().topicName(to.asText()).buildClient()
                    : builder.sender().queueName(to.asText()).buildClient());
            }
            while (!stopped) {
                for (ServiceBusReceivedMessage message : receiver.receiveMessages(2, Duration.ofSeconds(1))) {
                    move(receiver, senders, message);
                }
            }
        } finally {
            senders.forEach(ServiceBusSenderClient::close);
        }
    }

    private void move(ServiceBusReceiverClient receiver, List<ServiceBusSenderClient> senders,
        ServiceBusReceivedMessage message) {
        long until = micros(message.getLockedUntil().toInstant());
        if (until <= micros(Instant.now())) {
            return; // it was under way for longer than its lock lasts
        }
        ObjectNode what = line().put("id", message.getBody().toString().split(" ")[0])
            .put("from", how.get("from").asText()).put("seq", message.getSequenceNumber());
        say("got", what.deepCopy().put("count", message.getDeliveryCount() + 1).put("until", until));
        String tx = who + ".t" + ++count;
        boolean commits = random.nextInt(10) < 7;
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        say("begin", line().put("tx", tx));
        // Until the commit is on its way, whatever happens is a rollback: nobody asks for anything else.
        String ended = "rollback";
        String result = "unknown";
        try {
            for (int n = 0; n < senders.size(); ++n) {
                ObjectNode sent = line().put("id", tx + "." + n);
                say("send", sent.deepCopy().put("to", how.get("to").get(n).asText()).put("tx", tx));
                senders.get(n).sendMessage(new ServiceBusMessage(tx + "." + n + " moved"), transaction);
                say("sent", sent.put("result", "accepted"));
            }
            ObjectNode settle = what.deepCopy().put("how", "complete");
            say("settle", settle.deepCopy().put("tx", tx));
            receiver.complete(message, new CompleteOptions().setTransactionContext(transaction));
            say("settled", settle.put("result", "accepted"));
            if (commits) {
                ended = "commit";
                receiver.commitTransaction(transaction);
            } else {
                receiver.rollbackTransaction(transaction);
            }
            result = "accepted";
        } finally {
            say("end", line().put("tx", tx).put("how", ended).put("result", result));
        }
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode spec = JSON.readTree(Path.of(arguments[0]).toFile());
        FileChannel history = FileChannel.open(Path.of(spec.get("log").asText()), StandardOpenOption.WRITE,
            StandardOpenOption.APPEND, StandardOpenOption.CREATE);
        List<Mover> movers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (JsonNode how : spec.get("roles")) {
            movers.add(new Mover(spec, how, history, movers.size()));
            threads.add(new Thread(movers.get(movers.size() - 1)));
        }
        threads.forEach(Thread::start);
        try (Scanner commands = new Scanner(System.in, StandardCharsets.UTF_8)) {
            while (commands.hasNextLine() && commands.nextLine().trim().equals("quiet")) {
                continue; // nothing here sends of its own accord
            }
        }
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        for (Mover mover : movers) {
            System.out.println(mover.who + " move: " + mover.troubles);
        }
        System.exit(0); // threads of the SDK
    }
}
