import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools one after the other in one JVM, instead of one JVM per script.
 *
 * A line on standard input is a class below org.apache.kafka.tools (or kafka.NAME) and its arguments, separated by tabs.
 * A first field that begins with '<' is the tool's standard input in base64. The answer is a line with the exit code and
 * the lengths in bytes of its output and error output, and then both.
 */
public final class Tools {
    private static final class Exited extends Error {
        private final int code;

        private Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static Exited exited;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            String[] words = line.split("\t", -1);
            byte[] input = new byte[0];
            if (words[0].startsWith("<")) {
                input = Base64.getDecoder().decode(words[0].substring(1));
                words = Arrays.copyOfRange(words, 1, words.length);
            }
            System.setIn(new ByteArrayInputStream(input));
            int code = run(words);
            System.out.flush();
            answers.println(code + " " + out.size() + " " + errors.size());
            out.writeTo(answers);
            errors.writeTo(answers);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** The first call decides: some tools catch the exception, print it and exit once more. */
    private static void exit(int code) {
        if (exited == null) {
            exited = new Exited(code);
            System.setOut(new PrintStream(OutputStream.nullOutputStream()));
            System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        }
        throw exited;
    }

    private static int run(String[] words) {
        PrintStream out = System.out;
        PrintStream errors = System.err;
        exited = null;
        try {
            String name = words[0].startsWith("kafka.") ? words[0] : "org.apache.kafka.tools." + words[0];
            Class<?> tool = Class.forName(name);
            resetCounters(tool);
            tool.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            return exited != null ? exited.code : 0;
        } catch (InvocationTargetException error) {
            return exited != null ? exited.code : code(error.getCause());
        } catch (ReflectiveOperationException error) {
            return code(error);
        } finally {
            System.setOut(out);
            System.setErr(errors);
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
        }
    }

    /** A tool counts in static fields, as it expects to be alone in its JVM. */
    private static void resetCounters(Class<?> tool) throws ReflectiveOperationException {
        for (Field field : tool.getDeclaredFields()) {
            int modifiers = field.getModifiers();
            if (Modifier.isStatic(modifiers) && !Modifier.isFinal(modifiers) && field.getType() == int.class) {
                field.setAccessible(true);
                field.setInt(null, 0);
            }
        }
    }

    private static int code(Throwable error) {
        error.printStackTrace();
        return 1;
    }
}
