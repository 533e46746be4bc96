package orders;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/** The test kit from Java: one {@code barnabas serve --control} for the tests, a cluster for each of them. */
final class Barnabas implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final JsonNode control;

    /** Start the broker; it ends with this process, which holds the other end of its standard input. */
    Barnabas() throws IOException {
        Path file = Files.createTempDirectory("barnabas").resolve("control.json");
        String command = Optional.ofNullable(System.getenv("BARNABAS")).orElse("barnabas");
        process = new ProcessBuilder(command, "serve", "--listen", "127.0.0.1:0", "--control",
                "--control-file", file.toString(), "--end-with-stdin")
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
        String line;
        do {
            line = lines.readLine();
            if (line == null) throw new IOException("barnabas has ended");
        } while (!line.contains("started on"));
        control = JSON.readTree(file.toFile());
    }

    /** A cluster for one test. */
    Cluster open() throws Exception {
        JsonNode opened = call("POST", "/v1/clusters", Map.of());
        return new Cluster(opened.get("id").asInt(), opened.get("bootstrap").asText());
    }

    @Override
    public void close() throws Exception {
        process.getOutputStream().close();
        process.waitFor();
    }

    private JsonNode call(String method, String path, Object body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control.get("control").asText() + path))
                .header("Authorization", "Bearer " + control.get("token").asText())
                .method(method, BodyPublishers.ofString(JSON.writeValueAsString(body))).build();
        var response = http.send(request, BodyHandlers.ofString());
        JsonNode answer = JSON.readTree(response.body());
        if (response.statusCode() != 200) throw new IOException(answer.get("error").asText());
        return answer;
    }

    final class Cluster implements AutoCloseable {
        final String bootstrap;
        private final int id;

        private Cluster(int id, String bootstrap) {
            this.id = id;
            this.bootstrap = bootstrap;
        }

        /** Any operation of the control channel. */
        JsonNode perform(String operation, Map<String, Object> values) throws Exception {
            return call("POST", "/v1/clusters/" + id + "/" + operation, values);
        }

        @Override
        public void close() throws Exception {
            call("DELETE", "/v1/clusters/" + id, Map.of());
        }
    }
}
