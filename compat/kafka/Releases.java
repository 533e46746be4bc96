// Prints what a broker of one release of Apache Kafka answers to ApiVersions, as its own classes say.
//
// Its jars are on the class path: kafka-clients, and kafka-server-common from 3.3 on. Everything is called by reflection,
// as the classes have changed from release to release. One line an API: `api KEY MIN MAX`; one a feature that the broker
// supports: `feature NAME MIN MAX`.

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.TreeMap;

public final class Releases {
    public static void main(String[] arguments) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        TreeMap<Integer, String> lines = new TreeMap<>();
        for (Object key : served(keys, arguments[0])) {
            int id = ((Number) field(key, "id")).intValue();
            int first = ((Number) call(key, "oldestVersion")).intValue();
            int last = last(key);
            if (id == 0 && shownFromZero(keys)) {
                first = 0;
            }
            if (first <= last) {
                lines.put(id, "api " + id + " " + first + " " + last);
            }
        }
        lines.values().forEach(System.out::println);
        features();
    }

    // The APIs of brokers: with a listener's type from 2.8 on, all before.
    private static Collection<?> served(Class<?> keys, String mode) throws Exception {
        try {
            Class<?> listeners = Class.forName("org.apache.kafka.common.message.ApiMessageType$ListenerType");
            Object listener = null;
            for (Object one : listeners.getEnumConstants()) {
                if (one.toString().equals(mode)) {
                    listener = one;
                }
            }
            return (Collection<?>) keys.getMethod("apisForListener", listeners).invoke(null, listener);
        } catch (ClassNotFoundException missing) {
            return Arrays.asList((Object[]) keys.getEnumConstants());
        }
    }

    // Produce is told from version 0 on, for older librdkafka (KAFKA-18659).
    private static boolean shownFromZero(Class<?> keys) {
        try {
            keys.getField("PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION");
            return true;
        } catch (NoSuchFieldException missing) {
            return false;
        }
    }

    // The last version that is stable.
    private static int last(Object key) throws Exception {
        try {
            return ((Number) key.getClass().getMethod("latestVersion", boolean.class).invoke(key, false)).intValue();
        } catch (NoSuchMethodException missing) {
            return ((Number) call(key, "latestVersion")).intValue();
        }
    }

    private static void features() throws Exception {
        Class<?> versions;
        try {
            versions = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        } catch (ClassNotFoundException missing) {
            return;
        }
        Object first = constant(versions, "MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION");
        Object last;
        try {
            last = versions.getMethod("latestProduction").invoke(null);
        } catch (NoSuchMethodException missing) {
            last = versions.getMethod("latest").invoke(null);
        }
        System.out.println("feature metadata.version " + call(first, "featureLevel") + " " + call(last, "featureLevel"));
        for (String name : new String[] {"org.apache.kafka.server.common.Feature", "org.apache.kafka.server.common.Features"}) {
            try {
                Class<?> features = Class.forName(name);
                Object production = features.getField("PRODUCTION_FEATURES").get(null);
                for (Object feature : (Collection<?>) production) {
                    Object text = call(feature, "featureName");
                    if (!text.equals("metadata.version")) {
                        System.out.println("feature " + text + " " + call(feature, "minimumProduction") + " " + call(feature, "latestProduction"));
                    }
                }
                return;
            } catch (ClassNotFoundException | NoSuchFieldException missing) {
                continue;  // another class had the name in 3.6
            }
        }
    }

    private static Object constant(Class<?> owner, String... names) throws Exception {
        for (String name : names) {
            try {
                return owner.getField(name).get(null);
            } catch (NoSuchFieldException missing) {
                continue;
            }
        }
        return null;
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getField(name);
        return field.get(owner);
    }

    private static Object call(Object owner, String name) throws Exception {
        Method method = owner.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(owner);
    }
}
