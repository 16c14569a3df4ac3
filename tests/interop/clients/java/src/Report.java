package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The frame of the Java client: runs the wanted scenarios one by one and reports each on stdout. */
final class Report {
    private static final int SCENARIO_SECONDS = 25;
    private static final int AT_A_TIME = 4;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));
    final JsonNode context;

    Report(String path) throws IOException {
        context = MAPPER.readTree(new File(path));
    }

    JsonNode broker(String name) {
        return context.get("brokers").get(name);
    }

    String text(String name) {
        return context.get(name).asText();
    }

    /** Has the runner stop or start a broker and waits until it has done so. */
    void ask(String verb, String broker) throws IOException {
        System.out.println(MAPPER.createObjectNode().put("ask", verb).put("broker", broker));
        answers.readLine();
    }

    /**
     * A scenario passes when it returns (its value is the detail) and fails when it throws. They run one by one,
     * and those that disturb nobody several at a time after that.
     */
    void run(Map<String, Callable<String>> scenarios) throws InterruptedException {
        Set<String> together = new HashSet<>();
        context.get("together").forEach(name -> together.add(name.asText()));
        ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
        for (JsonNode node : context.get("scenarios")) {
            if (!together.contains(node.asText())) {
                judge(node.asText(), scenarios.get(node.asText()));
            }
        }
        for (String name : together) {
            pool.execute(() -> judge(name, scenarios.get(name)));
        }
        pool.shutdown();
        if (!pool.awaitTermination(together.size() * (SCENARIO_SECONDS + 1L), TimeUnit.SECONDS)) {
            System.err.println("some scenarios never ended");
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private void judge(String name, Callable<String> scenario) {
        ObjectNode verdict = MAPPER.createObjectNode().put("scenario", name).put("ok", false);
        if (scenario == null) {
            verdict.put("detail", "this client does not know the scenario");
        } else {
            Future<String> outcome = threads.submit(scenario);
            try {
                verdict.put("detail", outcome.get(SCENARIO_SECONDS, TimeUnit.SECONDS)).put("ok", true);
            } catch (TimeoutException e) {
                outcome.cancel(true);
                verdict.put("detail", "the scenario took longer than " + SCENARIO_SECONDS + " s");
            } catch (ExecutionException e) {
                e.getCause().printStackTrace();
                verdict.put("detail", e.getCause().toString());
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
        System.out.println(verdict);
    }
}
