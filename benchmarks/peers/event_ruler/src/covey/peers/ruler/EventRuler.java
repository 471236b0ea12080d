package covey.peers.ruler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import covey.peers.Filter;
import covey.peers.Harness;
import covey.peers.Peer;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import software.amazon.event.ruler.GenericMachine;

/** Amazon's event-ruler, the matcher of EventBridge: rules as paths through a shared automaton. */
public final class EventRuler implements Peer {
    // The library's API takes an event in three forms. Which is fastest depends on the rules, so all are tried.
    private static final Mode FLAT = new Mode("rulesForEvent on pre-flattened fields", 1);
    private static final Mode PARSED = new Mode("rulesForJSONEvent on a pre-parsed event", 1);
    private static final Mode TEXT = new Mode("rulesForJSONEvent on the JSON text", 1);

    // As it comes: with the builder's additional re-use of states, rules with ranges load several times slower.
    private final GenericMachine<Integer> machine = GenericMachine.<Integer>builder().build();

    /**
     * The subscription a rule belongs to, by the rule's number. Each rule has a name of its own, though the library takes
     * several rules under one: of two whose lists for an attribute overlap, as in t IN (w, y, z) OR t IN (w, x, z), it
     * then loses the second (release 2.1.0).
     */
    private final List<String> owners = new ArrayList<>();

    private boolean alone = true;
    private final List<List<String>> flat = new ArrayList<>();
    private final List<JsonNode> parsed = new ArrayList<>();
    private final List<String> texts = new ArrayList<>();

    public static void main(String[] arguments) {
        Harness.main(new EventRuler(), arguments);
    }

    @Override
    public String name() {
        return "event-ruler";
    }

    @Override
    public String version() {
        Properties properties = new Properties();
        String path = "/META-INF/maven/software.amazon.event.ruler/event-ruler/pom.properties";
        try (InputStream file = GenericMachine.class.getResourceAsStream(path)) {
            properties.load(file);
        } catch (IOException failure) {
            return "unknown";
        }
        return properties.getProperty("version");
    }

    @Override
    public void add(String id, Filter filter) throws Exception {
        Set<String> rules = Rules.of(filter);
        alone &= rules.size() <= 1;
        for (String rule : rules) {
            machine.addRule(owners.size(), rule);
            owners.add(id);
        }
    }

    @Override
    public void prepare(List<ObjectNode> events) {
        for (ObjectNode event : events) {
            texts.add(event.toString());
            parsed.add(event);
            // The form the library asks for: names sorted, values as JSON text.
            Map<String, String> sorted = new TreeMap<>();
            event.fields().forEachRemaining(field -> sorted.put(field.getKey(), field.getValue().toString()));
            List<String> fields = new ArrayList<>();
            sorted.forEach((name, value) -> {
                fields.add(name);
                fields.add(value);
            });
            flat.add(fields);
        }
    }

    @Override
    public List<Mode> modes() {
        return List.of(FLAT, PARSED, TEXT);
    }

    @Override
    public long match(Mode mode, int from, int to) throws Exception {
        long matches = 0;
        for (int i = from; i < to; i++) {
            List<Integer> found = mode == FLAT
                    ? machine.rulesForEvent(flat.get(i))
                    : mode == PARSED ? machine.rulesForJSONEvent(parsed.get(i)) : machine.rulesForJSONEvent(texts.get(i));
            matches += alone || found.size() < 2 ? found.size() : subscriptions(found);
        }
        return matches;
    }

    private int subscriptions(List<Integer> rules) {
        Set<String> distinct = new HashSet<>();
        rules.forEach(rule -> distinct.add(owners.get(rule)));
        return distinct.size();
    }
}
