import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools one after the other in one JVM, instead of one JVM per script.
 *
 * A line on standard input is a class below org.apache.kafka.tools and its arguments, separated by tabs. The answer is a
 * line with the exit code and the lengths in bytes of its output and error output, and then both.
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

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> exit(code, message));
        Exit.setHaltProcedure((code, message) -> exit(code, message));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            int code = run(line.split("\t", -1));
            answers.println(code + " " + out.size() + " " + errors.size());
            out.writeTo(answers);
            errors.writeTo(answers);
            answers.flush();
        }
        System.exit(0);
    }

    private static void exit(int code, String message) {
        if (message != null) {
            System.err.println(message);
        }
        throw new Exited(code);
    }

    private static int run(String[] words) {
        try {
            Class<?> tool = Class.forName("org.apache.kafka.tools." + words[0]);
            tool.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            return 0;
        } catch (InvocationTargetException error) {
            return code(error.getCause());
        } catch (ReflectiveOperationException error) {
            return code(error);
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
        }
    }

    private static int code(Throwable error) {
        if (error instanceof Exited exited) {
            return exited.code;
        }
        error.printStackTrace();
        return 1;
    }
}
