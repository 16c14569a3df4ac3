package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
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
    private static final ObjectMapper MAPPER = new ObjectMapper();

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

    /** A scenario passes when it returns (its value is the detail) and fails when it throws. */
    void run(Map<String, Callable<String>> scenarios) {
        ExecutorService threads = Executors.newCachedThreadPool();
        for (JsonNode node : context.get("scenarios")) {
            String name = node.asText();
            ObjectNode verdict = MAPPER.createObjectNode().put("scenario", name).put("ok", false);
            Callable<String> scenario = scenarios.get(name);
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
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
