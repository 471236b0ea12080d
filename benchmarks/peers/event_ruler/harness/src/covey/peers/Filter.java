package covey.peers;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A subscription in negation normal form.
 *
 * <p>Every NOT is pushed into the leaves. That is exact under SQL's three-valued logic: De Morgan's laws hold in it, and
 * a negated leaf is unknown where the leaf is. So each leaf here, negated or not, is true only for an event that carries
 * its attribute, and a library that knows two truth values decides the same set of events.
 */
public sealed interface Filter {
    record And(List<Filter> parts) implements Filter {}

    /** An Or without parts is never true; that is what a comparison with NULL becomes. */
    record Or(List<Filter> parts) implements Filter {}

    /** The attribute equals one of the values, or (negated) none. Values are all String, all Double or all Boolean. */
    record Among(String attribute, Set<Object> values, boolean negated) implements Filter {}

    record Range(String attribute, double low, boolean lowOpen, double high, boolean highOpen) implements Filter {}

    /** An order comparison with a text; a null bound is no bound. */
    record TextRange(String attribute, String low, boolean lowOpen, String high, boolean highOpen) implements Filter {}

    record Contains(String attribute, String text, boolean negated) implements Filter {}

    record SubstringOf(String attribute, String text, boolean negated) implements Filter {}

    Filter NEVER = new Or(List.of());

    /** Thrown for what a peer cannot say at all; the peer is then skipped, not failed. */
    final class Inexpressible extends RuntimeException {
        public Inexpressible(String why) {
            super(why);
        }
    }

    static Filter of(JsonNode tree) {
        return of(tree, false);
    }

    private static Filter of(JsonNode tree, boolean negated) {
        String kind = tree.get(0).asText();
        switch (kind) {
            case "and", "or" -> {
                List<Filter> parts = new ArrayList<>();
                for (int i = 1; i < tree.size(); i++) {
                    parts.add(of(tree.get(i), negated));
                }
                return kind.equals("and") == negated ? new Or(parts) : and(parts);
            }
            case "not" -> {
                return of(tree.get(1), !negated);
            }
            case "cmp" -> {
                return comparison(tree.get(1).asText(), tree.get(2).asText(), tree.get(3), negated);
            }
            case "in" -> {
                return among(tree.get(1).asText(), tree.get(2), negated);
            }
            case "between" -> {
                String attribute = tree.get(1).asText();
                Filter low = comparison(attribute, ">=", tree.get(2), negated);
                Filter high = comparison(attribute, "<=", tree.get(3), negated);
                return negated ? new Or(List.of(low, high)) : and(List.of(low, high));
            }
            case "contains" -> {
                return new Contains(tree.get(1).asText(), tree.get(2).asText(), negated);
            }
            case "substring_of" -> {
                return new SubstringOf(tree.get(1).asText(), tree.get(2).asText(), negated);
            }
            default -> throw new Inexpressible("unknown operator " + kind);
        }
    }

    private static Filter comparison(String attribute, String operator, JsonNode value, boolean negated) {
        if (value.isNull()) {
            return NEVER;
        }
        String op = negated ? negation(operator) : operator;
        if (op.equals("=") || op.equals("!=")) {
            return new Among(attribute, Set.of(constant(value)), op.equals("!="));
        }
        boolean below = op.startsWith("<");
        boolean open = op.length() == 1;
        if (value.isTextual()) {
            String text = value.asText();
            return new TextRange(attribute, below ? null : text, !below && open, below ? text : null, below && open);
        }
        if (!value.isNumber()) {
            throw new Inexpressible("an order comparison with " + value);
        }
        double number = (Double) constant(value);
        return below
                ? new Range(attribute, Double.NEGATIVE_INFINITY, false, number, open)
                : new Range(attribute, number, open, Double.POSITIVE_INFINITY, false);
    }

    private static String negation(String operator) {
        return switch (operator) {
            case "=" -> "!=";
            case "!=" -> "=";
            case "<" -> ">=";
            case "<=" -> ">";
            case ">" -> "<=";
            case ">=" -> "<";
            default -> throw new Inexpressible("unknown comparison " + operator);
        };
    }

    private static Filter among(String attribute, JsonNode list, boolean negated) {
        Set<Object> values = new LinkedHashSet<>();
        for (JsonNode value : list) {
            if (!value.isNull()) {
                values.add(constant(value));
            } else if (negated) {
                // NOT IN a list with NULL is false or unknown, never true.
                return NEVER;
            }
        }
        return new Among(attribute, values, negated);
    }

    /** One form a number, double, whatever it is written as: 5, 5.0 and -0.0 against 0 must compare as SQL has it. */
    static Object constant(JsonNode value) {
        if (value.isTextual()) {
            return value.asText();
        }
        if (value.isBoolean()) {
            return value.asBoolean();
        }
        if (value.isIntegralNumber() && Math.abs(value.asDouble()) > 1L << 53) {
            throw new Inexpressible("an integer above 2^53");
        }
        return value.asDouble() + 0.0;
    }

    /** Joins the ranges on one attribute, so that `a >= 1 AND a <= 5` costs a peer one range and not two. */
    private static Filter and(List<Filter> parts) {
        List<Filter> joined = new ArrayList<>();
        Map<String, Integer> ranges = new HashMap<>();
        List<Filter> flat = new ArrayList<>();
        for (Filter part : parts) {
            if (part instanceof And inner) {
                flat.addAll(inner.parts());
            } else {
                flat.add(part);
            }
        }
        for (Filter part : flat) {
            if (part instanceof Range range) {
                Integer at = ranges.putIfAbsent(range.attribute(), joined.size());
                if (at != null) {
                    joined.set(at, intersection((Range) joined.get(at), range));
                    continue;
                }
            }
            joined.add(part);
        }
        return joined.size() == 1 ? joined.get(0) : new And(joined);
    }

    static Range intersection(Range a, Range b) {
        boolean lowFromA = a.low() > b.low() || (a.low() == b.low() && a.lowOpen());
        boolean highFromA = a.high() < b.high() || (a.high() == b.high() && a.highOpen());
        Range low = lowFromA ? a : b;
        Range high = highFromA ? a : b;
        return new Range(a.attribute(), low.low(), low.lowOpen(), high.high(), high.highOpen());
    }

    static boolean isEmpty(Range range) {
        return range.low() > range.high() || (range.low() == range.high() && (range.lowOpen() || range.highOpen()));
    }

    /** All substrings of a text, the empty one too: what `substring_of` accepts, as a list. */
    static Set<Object> substrings(String text) {
        if (text.length() > 64) {
            throw new Inexpressible("substring_of a text of more than 64 characters");
        }
        Set<Object> all = new LinkedHashSet<>();
        all.add("");
        for (int from = 0; from < text.length(); from++) {
            for (int to = from + 1; to <= text.length(); to++) {
                all.add(text.substring(from, to));
            }
        }
        return all;
    }
}
