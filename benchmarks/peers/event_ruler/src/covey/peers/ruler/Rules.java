package covey.peers.ruler;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import covey.peers.Filter;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A filter as rules: its disjunctive normal form, one rule a conjunction.
 *
 * <p>The rule language has an `$or`, but the library's compiler expands it the same way; written out here, intersections
 * on one attribute can be taken and empty conjunctions dropped.
 */
final class Rules {
    /** Beyond this, one subscription costs what a whole table of them should. */
    private static final int MOST_CONJUNCTIONS = 256;

    private Rules() {}

    static Set<String> of(Filter filter) {
        Set<String> rules = new LinkedHashSet<>();
        for (Map<String, Values> conjunction : conjunctions(filter)) {
            if (conjunction.isEmpty()) {
                throw new Filter.Inexpressible("event-ruler has no rule that is always true");
            }
            ObjectNode rule = JsonNodeFactory.instance.objectNode();
            conjunction.forEach((attribute, values) -> rule.set(attribute, values.patterns()));
            rules.add(rule.toString());
        }
        return rules;
    }

    private static List<Map<String, Values>> conjunctions(Filter filter) {
        if (filter instanceof Filter.Or or) {
            List<Map<String, Values>> all = new ArrayList<>();
            for (Filter part : or.parts()) {
                all.addAll(conjunctions(part));
                check(all.size());
            }
            return all;
        }
        if (filter instanceof Filter.And and) {
            List<Map<String, Values>> product = List.of(Map.of());
            for (Filter part : and.parts()) {
                List<Map<String, Values>> factor = conjunctions(part);
                List<Map<String, Values>> next = new ArrayList<>();
                for (Map<String, Values> left : product) {
                    for (Map<String, Values> right : factor) {
                        Map<String, Values> both = new TreeMap<>(left);
                        right.forEach((attribute, values) -> both.merge(attribute, values, Values::and));
                        if (both.values().stream().noneMatch(Values::isEmpty)) {
                            next.add(both);
                            check(next.size());
                        }
                    }
                }
                product = next;
            }
            return product;
        }
        Values values = Values.of(filter);
        return values.isEmpty() ? List.of() : List.of(Map.of(attribute(filter), values));
    }

    private static String attribute(Filter leaf) {
        if (leaf instanceof Filter.Range range) {
            return range.attribute();
        }
        if (leaf instanceof Filter.Among among) {
            return among.attribute();
        }
        if (leaf instanceof Filter.Contains contains) {
            return contains.attribute();
        }
        return ((Filter.SubstringOf) leaf).attribute();
    }

    private static void check(int conjunctions) {
        if (conjunctions > MOST_CONJUNCTIONS) {
            throw new Filter.Inexpressible(
                    "a subscription needs more than " + MOST_CONJUNCTIONS + " conjunctions, each a rule of its own");
        }
    }
}
