import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.login.AppConfigurationEntry;

/** Reads texts from stdin, each after its length, as Java and Kafka read them; a line of hexadecimal text for each. */
public class Readers {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        StringBuilder out = new StringBuilder();
        while (true) {
            byte[] content;
            try {
                content = new byte[in.readInt()];
            } catch (EOFException end) {
                break;
            }
            in.readFully(content);
            try {
                out.append(arguments[0].equals("jaas") ? jaas(content) : properties(content));
            } catch (IllegalArgumentException | InvocationTargetException refused) {
                out.append("refused");
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    private static String properties(byte[] content) throws Exception {
        Properties found = new Properties();
        found.load(new ByteArrayInputStream(content));
        return entries(found);
    }

    private static String jaas(byte[] content) throws Exception {
        Class<?> kind = Class.forName("org.apache.kafka.common.security.JaasConfig");
        Constructor<?> make = kind.getDeclaredConstructor(String.class, String.class);
        make.setAccessible(true);
        Object made = make.newInstance("it", new String(content, StandardCharsets.UTF_8));
        Method get = kind.getMethod("getAppConfigurationEntry", String.class);
        get.setAccessible(true);
        AppConfigurationEntry[] found = (AppConfigurationEntry[]) get.invoke(made, "it");
        if (found.length != 1 || found[0].getLoginModuleName() == null || found[0].getOptions().containsKey(null)) {
            return "refused";
        }
        return hex(found[0].getLoginModuleName()) + "= " + entries(found[0].getOptions());
    }

    private static String entries(Map<?, ?> found) {
        StringBuilder out = new StringBuilder();
        found.forEach((name, value) -> out.append(hex(name)).append('=').append(hex(value)).append(' '));
        return out.toString();
    }

    private static String hex(Object text) {
        StringBuilder out = new StringBuilder();
        for (char each : text.toString().toCharArray()) {
            out.append(String.format("%04x", (int) each));
        }
        return out.toString();
    }
}
