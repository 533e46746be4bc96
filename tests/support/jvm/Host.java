import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.StandardProtocolFamily;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import javax.tools.ToolProvider;

/**
 * Runs the main methods of other programs in this JVM, several at the same time: {@code java Host.java SOCKET}.
 *
 * A request and its answer are messages: the number of fields, and each field with its length (4 bytes, big-endian).
 * Requests:
 * <pre>
 * run, class path, class, milliseconds, standard input, argument...   answer: exit code, output, error output, CPU
 * compile, argument...                                                answer: the same, of javac
 * hold                                                                answer: held
 * </pre>
 * CPU is the CPU seconds of this JVM since the last answer to anyone. The exit code of a run that takes longer than its
 * milliseconds is -1; its error output ends with the stacks of its threads.
 *
 * Runs with the same class path share a class loader: loaded and compiled classes are what makes a second run cheap. Only
 * a program that counts in static fields has it for itself. A run has a thread group, by which its streams are found. It
 * ends when its main method ends, whatever other threads it has, or calls Kafka's Exit; then its shutdown hooks run.
 * System.exit ends this JVM. Threads that are left are stopped when another run ends some seconds later.
 *
 * The JVM ends when no connection is open for some seconds. So whoever needs it for longer holds one.
 */
public final class Host {
    private static final long FIRST_MS = 60_000;
    private static final long GRACE_MS = 3_000;
    private static final long LAST_WORDS_MS = 20_000;
    private static final long MAIN_MS = 1_000;
    private static final long LEFT_MS = 5_000;
    private static final List<String> EXITS =
            List.of("org.apache.kafka.common.utils.Exit", "org.apache.kafka.common.utils.internals.Exit");

    private static final Supplier<List<Thread>> SHUTDOWN_HOOKS = shutdownHooks();
    private static final Map<String, List<Loader>> LOADERS = new HashMap<>();
    private static final Deque<Run> OVER = new ArrayDeque<>();
    private static final PrintStream LOG = System.err;
    private static int connections;
    private static long connectionsChanged = System.nanoTime();
    private static long reportedCpu;

    public static void main(String[] arguments) throws Exception {
        Path path = Path.of(arguments[0]);
        System.setOut(new PrintStream(new Outlet(false), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Outlet(true), true, StandardCharsets.UTF_8));
        System.setIn(new Inlet());
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(path));
        start("idle", () -> endWhenIdle(server, path));
        while (true) {
            SocketChannel connection = server.accept();
            count(1);
            start("connection", () -> serve(connection));
        }
    }

    /** Those of this JVM, some of which are of runs. There is no public way to know them. */
    @SuppressWarnings("unchecked")
    private static Supplier<List<Thread>> shutdownHooks() {
        try {
            Class<?> holder = Class.forName("java.lang.ApplicationShutdownHooks");
            Field field = holder.getDeclaredField("hooks");
            field.setAccessible(true);
            Map<Thread, Thread> hooks = (Map<Thread, Thread>) field.get(null);
            return () -> {
                synchronized (holder) {
                    return List.copyOf(hooks.keySet());
                }
            };
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    // ------------------------------------------------------------ connections

    private static void count(int change) {
        synchronized (Host.class) {
            connections += change;
            connectionsChanged = System.nanoTime();
            Host.class.notifyAll();
        }
    }

    private static void endWhenIdle(ServerSocketChannel server, Path path) {
        try {
            synchronized (Host.class) {
                long patience = FIRST_MS;
                while (true) {
                    long left = patience - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - connectionsChanged);
                    if (connections == 0 && left <= 0) {
                        break;
                    }
                    Host.class.wait(connections == 0 ? left : 0);
                    patience = GRACE_MS;
                }
                Files.deleteIfExists(path);
            }
        } catch (IOException | InterruptedException error) {
            error.printStackTrace(LOG);
        }
        Runtime.getRuntime().halt(0); // a connection that was not accepted yet is closed: its client starts another JVM
    }

    private static void serve(SocketChannel connection) {
        try (connection) {
            for (List<byte[]> request = read(connection); request != null; request = read(connection)) {
                write(connection, answer(request));
            }
        } catch (IOException error) {
            LOG.println("A connection has ended: " + error);
        } catch (Throwable error) {
            error.printStackTrace(LOG);
        } finally {
            count(-1);
        }
    }

    private static List<byte[]> answer(List<byte[]> request) throws InterruptedException {
        List<String> words = new ArrayList<>();
        request.forEach(field -> words.add(new String(field, StandardCharsets.UTF_8)));
        switch (words.get(0)) {
            case "run":
                String[] arguments = words.subList(5, words.size()).toArray(new String[0]);
                return run(words.get(1), words.get(2), Long.parseLong(words.get(3)), request.get(4), arguments);
            case "compile":
                return compile(words.subList(1, words.size()).toArray(new String[0]));
            case "hold":
                return List.of("held".getBytes(StandardCharsets.UTF_8));
            default:
                throw new IllegalArgumentException("no request: " + words.get(0));
        }
    }

    private static List<byte[]> fields(int code, byte[] out, byte[] errors) {
        return List.of(String.valueOf(code).getBytes(), out, errors, String.valueOf(newCpuSeconds()).getBytes());
    }

    private static synchronized double newCpuSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long before = reportedCpu;
        reportedCpu = system.getProcessCpuTime();
        return (reportedCpu - before) / 1e9;
    }

    /** The fields of a message; null at the end of the connection. */
    private static List<byte[]> read(SocketChannel connection) throws IOException {
        ByteBuffer count = ByteBuffer.allocate(4);
        if (connection.read(count) < 0) {
            return null;
        }
        List<byte[]> fields = new ArrayList<>();
        for (int left = filled(connection, count).getInt(); left > 0; left--) {
            int length = filled(connection, ByteBuffer.allocate(4)).getInt();
            fields.add(filled(connection, ByteBuffer.allocate(length)).array());
        }
        return fields;
    }

    private static ByteBuffer filled(SocketChannel connection, ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            if (connection.read(buffer) < 0) {
                throw new EOFException("the request is not complete");
            }
        }
        return buffer.flip();
    }

    private static void write(SocketChannel connection, List<byte[]> fields) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(4 + fields.stream().mapToInt(field -> 4 + field.length).sum());
        buffer.putInt(fields.size());
        fields.forEach(field -> buffer.putInt(field.length).put(field));
        buffer.flip();
        while (buffer.hasRemaining()) {
            connection.write(buffer);
        }
    }

    // ------------------------------------------------------------ runs

    private static List<byte[]> compile(String[] arguments) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int code = ToolProvider.getSystemJavaCompiler().run(null, out, errors, arguments);
        return fields(code, out.toByteArray(), errors.toByteArray());
    }

    private static List<byte[]> run(String classPath, String name, long milliseconds, byte[] input, String[] arguments)
            throws InterruptedException {
        Loader loader = Loader.taken(classPath, name);
        Run run = new Run(loader, new ByteArrayInputStream(input));
        boolean isClean = run.run(name, arguments, milliseconds);
        Loader.release(classPath, name, loader, isClean);
        List<byte[]> answer = fields(run.code, run.out.toByteArray(), run.errors.toByteArray());
        run.forget();
        synchronized (OVER) {
            OVER.add(run);
            while (OVER.element().isLongOver()) {
                OVER.remove().stopThreads();
            }
        }
        return answer;
    }

    /** Thrown where a program exits. */
    private static final class Exited extends Error {
        private Exited() {
            super(null, null, false, false);
        }
    }

    /** One run of a main method: its threads, its streams, and how it has ended. */
    private static final class Run extends ThreadGroup {
        private final Loader loader;
        private final InputStream in;
        private ByteArrayOutputStream out = new ByteArrayOutputStream();
        private ByteArrayOutputStream errors = new ByteArrayOutputStream();
        private final List<Thread> hooks = new ArrayList<>();
        private final Set<Thread> exited = new HashSet<>();
        private final CountDownLatch ended = new CountDownLatch(1);
        private int code;
        private boolean isOver;
        private long over;

        private Run(Loader loader, InputStream in) {
            super("run");
            this.loader = loader;
            this.in = in;
        }

        /** The run that the current thread belongs to, or null. */
        private static Run current() {
            for (ThreadGroup group = Thread.currentThread().getThreadGroup(); group != null; group = group.getParent()) {
                if (group instanceof Run) {
                    return (Run) group;
                }
            }
            return null;
        }

        /** Whether nothing of the run goes on, so that its class loader can be used again. */
        private boolean run(String name, String[] arguments, long milliseconds) throws InterruptedException {
            Thread main = thread("main", () -> callMain(name, arguments));
            main.start();
            String stacks = "";
            if (!ended.await(milliseconds, TimeUnit.MILLISECONDS)) {
                stacks = stacks();
                end(-1);
            }
            boolean isClean = runHooks();
            synchronized (this) {
                isOver = true;
                over = System.nanoTime();
                errors.writeBytes(stacks.getBytes(StandardCharsets.UTF_8));
            }
            main.join(MAIN_MS);
            return isClean && !main.isAlive();
        }

        /** Whether they have ended. */
        private boolean runHooks() throws InterruptedException {
            for (Thread hook : SHUTDOWN_HOOKS.get()) {
                if (hook.getThreadGroup() == this || parentOf(hook.getThreadGroup())) {
                    Runtime.getRuntime().removeShutdownHook(hook);
                    hooks.add(hook);
                }
            }
            hooks.forEach(Thread::start);
            for (Thread hook : hooks) {
                hook.join(LAST_WORDS_MS);
            }
            return hooks.stream().noneMatch(Thread::isAlive);
        }

        private boolean isLongOver() {
            return System.nanoTime() - over > TimeUnit.MILLISECONDS.toNanos(LEFT_MS);
        }

        /**
         * Stops the threads that are left, as the end of a process does: most tools do not close their clients before they
         * exit with an error, and these would try for ever to reach a broker. They have had time to initialize classes,
         * which the stop of a thread can spoil. Later versions of Java cannot stop threads; there they stay.
         */
        private void stopThreads() {
            Thread[] left = new Thread[activeCount() + 8];
            int count = enumerate(left);
            try {
                for (int number = 0; number < count; number++) {
                    Thread.class.getMethod("stop").invoke(left[number]);
                }
            } catch (ReflectiveOperationException notInThisVersion) {
                return;
            }
        }

        /** The group of its parent keeps it for ever. */
        private void forget() {
            out = null;
            errors = null;
            hooks.clear();
            exited.clear();
        }

        private Thread thread(String name, Runnable work) {
            Thread thread = new Thread(this, work, name);
            thread.setContextClassLoader(loader);
            thread.setDaemon(true);
            return thread;
        }

        private void callMain(String name, String[] arguments) {
            try {
                Class<?> program = loader.fresh(name);
                program.getMethod("main", String[].class).invoke(null, (Object) arguments);
                end(0);
            } catch (InvocationTargetException error) {
                fail(error.getCause());
            } catch (ReflectiveOperationException | LinkageError error) {
                fail(error);
            }
        }

        private void fail(Throwable error) {
            error.printStackTrace(); // not heard after an exit
            end(1);
        }

        private synchronized void exit(int code) {
            exited.add(Thread.currentThread());
            end(code);
        }

        /** The first call decides. */
        private synchronized void end(int code) {
            if (ended.getCount() > 0) {
                this.code = code;
                ended.countDown();
            }
        }

        /** A thread that has called Exit is heard no more: some programs catch what it throws, print it and exit again. */
        private synchronized OutputStream stream(boolean isErrors) {
            boolean isHeard = !isOver && !exited.contains(Thread.currentThread());
            return isHeard ? isErrors ? errors : out : OutputStream.nullOutputStream();
        }

        private String stacks() {
            StringBuilder text = new StringBuilder("It has not ended in time. Its threads:\n");
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                ThreadGroup group = thread.getThreadGroup();
                if (group != null && (group == this || parentOf(group))) {
                    text.append(thread.getName()).append('\n');
                    Arrays.stream(stack).forEach(frame -> text.append("\tat ").append(frame).append('\n'));
                }
            });
            return text.toString();
        }
    }

    /** The classes of a class path. The streams, Exit and static fields of its programs are as in a JVM of their own. */
    private static final class Loader extends URLClassLoader {
        private final Map<Field, Object> initial = new HashMap<>();
        private final Set<String> alone = new HashSet<>();

        private Loader(String classPath) {
            super(urls(classPath), ClassLoader.getPlatformClassLoader());
            for (String name : EXITS) {
                try {
                    Class<?> exits = loadClass(name);
                    for (String what : List.of("Exit", "Halt")) {
                        set(exits, "set" + what + "Procedure", "$Procedure", (proxy, method, words) -> exit((int) words[0]));
                    }
                    set(exits, "setShutdownHookAdder", "$ShutdownHookAdder", (proxy, method, words) -> hook((Runnable) words[1]));
                } catch (ReflectiveOperationException notInThisVersion) {
                    // The class has moved between two versions of Kafka.
                }
            }
        }

        /** A loader in which the program can run now. */
        private static Loader taken(String classPath, String name) {
            synchronized (LOADERS) {
                List<Loader> loaders = LOADERS.computeIfAbsent(classPath, key -> new ArrayList<>());
                for (Loader loader : loaders) {
                    if (!loader.alone.contains(name)) {
                        return loader.taken(name);
                    }
                }
                loaders.add(new Loader(classPath));
                return loaders.get(loaders.size() - 1).taken(name);
            }
        }

        private Loader taken(String name) {
            try {
                if (!counters(Class.forName(name, false, this)).isEmpty()) {
                    alone.add(name);
                }
            } catch (ClassNotFoundException | LinkageError notToBeRun) {
                // The run will say so.
            }
            return this;
        }

        /** One that is not clean has something of the run in it, and is not used again. */
        private static void release(String classPath, String name, Loader loader, boolean isClean) {
            synchronized (LOADERS) {
                loader.alone.remove(name);
                if (!isClean) {
                    LOADERS.get(classPath).remove(loader);
                }
            }
        }

        private static URL[] urls(String classPath) {
            try {
                List<URL> urls = new ArrayList<>();
                for (String entry : classPath.split(":")) {
                    urls.add(Path.of(entry).toUri().toURL());
                }
                return urls.toArray(new URL[0]);
            } catch (IOException error) {
                throw new IllegalArgumentException(error);
            }
        }

        private void set(Class<?> exits, String setter, String type, InvocationHandler handler)
                throws ReflectiveOperationException {
            Class<?> wanted = loadClass(exits.getName() + type);
            Object proxy = Proxy.newProxyInstance(this, new Class<?>[] {wanted}, handler);
            exits.getMethod(setter, wanted).invoke(null, proxy);
        }

        private static Object exit(int code) {
            Run run = Run.current();
            if (run != null) {
                run.exit(code);
            }
            throw new Exited();
        }

        private static Object hook(Runnable hook) {
            Run run = Run.current();
            if (run != null) {
                run.hooks.add(run.thread("hook", hook));
            }
            return null;
        }

        /** The class; the counters among its static fields have the values of its initialization again. */
        private synchronized Class<?> fresh(String name) throws ReflectiveOperationException {
            Class<?> program = Class.forName(name, true, this);
            for (Field field : counters(program)) {
                field.setAccessible(true);
                if (initial.containsKey(field)) {
                    field.set(null, initial.get(field));
                } else {
                    initial.put(field, field.get(null));
                }
            }
            return program;
        }

        private static List<Field> counters(Class<?> program) {
            List<Field> found = new ArrayList<>();
            for (Field field : program.getDeclaredFields()) {
                int modifiers = field.getModifiers();
                if (Modifier.isStatic(modifiers) && !Modifier.isFinal(modifiers) && field.getType().isPrimitive()) {
                    found.add(field);
                }
            }
            return found;
        }
    }

    // ------------------------------------------------------------ streams

    /** Standard output or error output: of the run that the writing thread belongs to. */
    private static final class Outlet extends OutputStream {
        private final boolean isErrors;

        private Outlet(boolean isErrors) {
            this.isErrors = isErrors;
        }

        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            Run run = Run.current();
            if (run == null) {
                LOG.write(bytes, offset, length);
            } else {
                run.stream(isErrors).write(bytes, offset, length);
            }
        }
    }

    /** Standard input: of the run that the reading thread belongs to. */
    private static final class Inlet extends InputStream {
        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            Run run = Run.current();
            return run == null ? -1 : run.in.read(bytes, offset, length);
        }

        @Override
        public int available() throws IOException {
            Run run = Run.current();
            return run == null ? 0 : run.in.available();
        }
    }
}
