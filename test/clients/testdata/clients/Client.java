import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Locale;
import java.util.zip.GZIPInputStream;

/**
 * Sends the requests on standard input with java.net.http: see client.py for the form
 * of the lines. The client is as it is by default: it asks for HTTP/2 with Upgrade.
 */
public class Client {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(20)).build();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(parts[1]))
                    .method(parts[0], HttpRequest.BodyPublishers.noBody()).timeout(Duration.ofSeconds(20));
            for (int i = 2; i < parts.length; i++) {
                int colon = parts[i].indexOf(": ");
                request.header(parts[i].substring(0, colon), parts[i].substring(colon + 2));
            }
            HttpResponse<byte[]> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            byte[] body = answer.body();
            if (body.length > 0 && answer.headers().firstValue("content-encoding").orElse("").equals("gzip")) {
                body = new GZIPInputStream(new ByteArrayInputStream(body)).readAllBytes();
            }
            StringBuilder out = new StringBuilder();
            out.append(answer.statusCode()).append('\t').append(body.length).append('\t')
                    .append(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body)));
            answer.headers().map().forEach((name, values) ->
                    out.append('\t').append(name.toLowerCase(Locale.ROOT)).append(": ").append(String.join(", ", values)));
            System.out.println(out);
        }
    }
}
