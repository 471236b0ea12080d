package covey.peers.ruler;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import covey.peers.Filter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What a conjunction allows one attribute to be.
 *
 * <p>A rule names each attribute once and gives it a list of patterns, any of which will do. So all that a conjunction
 * says of an attribute has to become one union first; this is where the intersections are taken.
 */
sealed interface Values {
    /** Sorted, disjoint, none empty. */
    record Numbers(List<Filter.Range> ranges) implements Values {}

    /** Strings or Booleans, listed or (negated) all but the listed. */
    record Words(Set<Object> words, boolean negated) implements Values {}

    record Fragment(String text, boolean negated) implements Values {}

    static Values of(Filter leaf) {
        if (leaf instanceof Filter.Range range) {
            return new Numbers(Filter.isEmpty(range) ? List.of() : List.of(range));
        }
        if (leaf instanceof Filter.Among among) {
            Object any = among.values().stream().findFirst().orElse("");
            if (any instanceof Double) {
                return numbers(among);
            }
            if (any instanceof Boolean && among.negated()) {
                // anything-but takes no Boolean; there are but two.
                Set<Object> others = new LinkedHashSet<>(List.of(true, false));
                others.removeAll(among.values());
                return new Words(others, false);
            }
            return new Words(among.values(), among.negated());
        }
        if (leaf instanceof Filter.SubstringOf inside) {
            return new Words(Filter.substrings(inside.text()), inside.negated());
        }
        if (leaf instanceof Filter.Contains contains) {
            if (contains.text().isEmpty()) {
                return new Words(Set.of(), !contains.negated());
            }
            return new Fragment(contains.text(), contains.negated());
        }
        throw new Filter.Inexpressible("event-ruler has no order on strings");
    }

    private static Values numbers(Filter.Among among) {
        List<Double> points = new ArrayList<>();
        for (Object value : among.values()) {
            if (!(value instanceof Double number)) {
                throw new Filter.Inexpressible("numbers and strings in one list");
            }
            points.add(number);
        }
        points.sort(Comparator.naturalOrder());
        List<Filter.Range> ranges = new ArrayList<>();
        double last = Double.NEGATIVE_INFINITY;
        boolean lastOpen = false;
        for (double point : points) {
            if (among.negated()) {
                ranges.add(new Filter.Range(among.attribute(), last, lastOpen, point, true));
                last = point;
                lastOpen = true;
            } else {
                ranges.add(new Filter.Range(among.attribute(), point, false, point, false));
            }
        }
        if (among.negated()) {
            ranges.add(new Filter.Range(among.attribute(), last, lastOpen, Double.POSITIVE_INFINITY, false));
        }
        return new Numbers(ranges);
    }

    default Values and(Values other) {
        if (this instanceof Numbers a && other instanceof Numbers b) {
            List<Filter.Range> both = new ArrayList<>();
            for (Filter.Range x : a.ranges()) {
                for (Filter.Range y : b.ranges()) {
                    Filter.Range common = Filter.intersection(x, y);
                    if (!Filter.isEmpty(common)) {
                        both.add(common);
                    }
                }
            }
            return new Numbers(both);
        }
        if (this instanceof Words a && other instanceof Words b) {
            Set<Object> words = new LinkedHashSet<>(a.negated() ? b.words() : a.words());
            if (a.negated() && b.negated()) {
                words.addAll(a.words());
            } else if (a.negated()) {
                words.removeAll(a.words());
            } else if (b.negated()) {
                words.removeAll(b.words());
            } else {
                words.retainAll(b.words());
            }
            return new Words(words, a.negated() && b.negated());
        }
        if (this instanceof Fragment && other instanceof Words) {
            return other.and(this);
        }
        if (this instanceof Words a && other instanceof Fragment b && (!a.negated() || a.words().isEmpty())) {
            if (a.negated()) {
                return b;
            }
            Set<Object> words = new LinkedHashSet<>(a.words());
            words.removeIf(word -> ((String) word).contains(b.text()) == b.negated());
            return new Words(words, false);
        }
        if (equals(other)) {
            return this;
        }
        throw new Filter.Inexpressible("two tests of one attribute that no single pattern list can say together");
    }

    default boolean isEmpty() {
        return (this instanceof Numbers numbers && numbers.ranges().isEmpty())
                || (this instanceof Words words && words.words().isEmpty() && !words.negated());
    }

    /** The attribute's pattern list in the rule language. */
    default ArrayNode patterns() {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        if (this instanceof Fragment fragment) {
            String wildcard = "*" + fragment.text().replace("\\", "\\\\").replace("*", "\\*") + "*";
            ObjectNode pattern = list.addObject();
            (fragment.negated() ? pattern.putObject("anything-but") : pattern).put("wildcard", wildcard);
        } else if (this instanceof Words words) {
            if (words.negated() && words.words().isEmpty()) {
                list.addObject().put("exists", true);
            } else {
                ArrayNode target = words.negated() ? list.addObject().putArray("anything-but") : list;
                words.words().forEach(target::addPOJO);
            }
        } else if (this instanceof Numbers numbers) {
            List<Filter.Range> ranges = numbers.ranges();
            if (isAllButPoints(ranges)) {
                if (ranges.size() == 1) {
                    list.addObject().put("exists", true);
                } else {
                    ArrayNode points = list.addObject().putArray("anything-but");
                    ranges.subList(1, ranges.size()).forEach(range -> points.add(range.low()));
                }
            } else {
                ranges.forEach(range -> numeric(list.addObject().putArray("numeric"), range));
            }
        }
        return list;
    }

    private static boolean isAllButPoints(List<Filter.Range> ranges) {
        double reached = Double.NEGATIVE_INFINITY;
        for (Filter.Range range : ranges) {
            if (range.low() != reached) {
                return false;
            }
            reached = range.high();
        }
        return reached == Double.POSITIVE_INFINITY;
    }

    private static void numeric(ArrayNode terms, Filter.Range range) {
        if (range.low() == range.high()) {
            terms.add("=").add(range.low());
            return;
        }
        if (range.low() != Double.NEGATIVE_INFINITY) {
            terms.add(range.lowOpen() ? ">" : ">=").add(range.low());
        }
        if (range.high() != Double.POSITIVE_INFINITY) {
            terms.add(range.highOpen() ? "<" : "<=").add(range.high());
        }
    }
}
