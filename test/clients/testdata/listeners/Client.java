import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Asks for the paths on standard input with java.net.http and a keystore: see client.py for
 * the arguments and the lines.
 */
public class Client {
    public static void main(String[] arguments) throws Exception {
        String protocol = arguments[0], address = arguments[1], authority = arguments[2], apiKey = arguments[5];
        HttpClient.Builder builder = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(20))
                .version(protocol.equals("h2") ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1);
        if (!authority.equals("-")) {
            builder.sslContext(context(authority, arguments[3], arguments[4]));
        }
        HttpClient client = builder.build();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String path = lines.readLine(); path != null; path = lines.readLine()) {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create((authority.equals("-") ? "http://" : "https://") + address + path))
                    .timeout(Duration.ofSeconds(20));
            if (!apiKey.equals("-")) {
                request.header("X-API-Key", apiKey);
            }
            HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (protocol.equals("h2") && answer.version() != HttpClient.Version.HTTP_2) {
                throw new IllegalStateException("answered in " + answer.version());
            }
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }

    static SSLContext context(String authority, String certificate, String key) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12"), own = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", read(authority));
        own.load(null, null);
        if (!certificate.equals("-")) {
            String text = Files.readString(Path.of(key)).replaceAll("-----[^-]*-----|\\s", "");
            own.setKeyEntry("own", KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text))),
                    new char[0], new Certificate[] {read(certificate)});
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(own, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    static Certificate read(String file) throws Exception {
        return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(Files.readAllBytes(Path.of(file))));
    }
}
