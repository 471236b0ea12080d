package covey.peers.monitor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import covey.peers.Filter;
import java.util.List;
import java.util.Set;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.RegexpQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TermRangeQuery;
import org.apache.lucene.search.WildcardQuery;
import org.apache.lucene.util.BytesRef;

/**
 * How events become documents and filters queries.
 *
 * <p>An attribute is a keyword under its name; a number is also a point, for ranges. The keyword of a number lets an
 * equality of numbers be a term, which the presearcher can look up and a point is not. The names of an event's
 * attributes are keywords of one more field: an exclusion requires its attribute there, which is what makes NOT false on
 * a missing attribute as SQL has it.
 */
final class Queries {
    /** No attribute of a workload is called this. */
    static final String PRESENT = "__present__";

    private Queries() {}

    static Document document(ObjectNode event) {
        Document document = new Document();
        event.fields().forEachRemaining(field -> {
            String attribute = field.getKey();
            JsonNode value = field.getValue();
            Object constant = Filter.constant(value);
            document.add(new StringField(PRESENT, attribute, Field.Store.NO));
            document.add(new StringField(attribute, keyword(constant), Field.Store.NO));
            if (constant instanceof Double number) {
                document.add(new DoublePoint(attribute, number));
            }
        });
        return document;
    }

    private static String keyword(Object constant) {
        return constant.toString();
    }

    static Query query(Filter filter) {
        if (filter instanceof Filter.And and) {
            BooleanQuery.Builder all = new BooleanQuery.Builder();
            and.parts().forEach(part -> all.add(query(part), Occur.FILTER));
            return all.build();
        }
        if (filter instanceof Filter.Or or) {
            return any(or.parts().stream().map(Queries::query).toList());
        }
        if (filter instanceof Filter.Among among) {
            return among(among.attribute(), among.values(), among.negated());
        }
        if (filter instanceof Filter.SubstringOf inside) {
            return among(inside.attribute(), Filter.substrings(inside.text()), inside.negated());
        }
        if (filter instanceof Filter.Contains contains) {
            return contains(contains);
        }
        if (filter instanceof Filter.Range range) {
            return range(range);
        }
        Filter.TextRange range = (Filter.TextRange) filter;
        return new TermRangeQuery(
                range.attribute(),
                range.low() == null ? null : new BytesRef(range.low()),
                range.high() == null ? null : new BytesRef(range.high()),
                !range.lowOpen(),
                !range.highOpen());
    }

    private static Query any(List<Query> parts) {
        if (parts.isEmpty()) {
            return new MatchNoDocsQuery();
        }
        if (parts.size() == 1) {
            return parts.get(0);
        }
        BooleanQuery.Builder some = new BooleanQuery.Builder();
        parts.forEach(part -> some.add(part, Occur.SHOULD));
        return some.build();
    }

    /** Terms one by one and no TermInSetQuery: the presearcher sees through a disjunction of terms, not through a set. */
    private static Query among(String attribute, Set<Object> values, boolean negated) {
        Query listed = any(values.stream()
                .map(value -> (Query) new TermQuery(new Term(attribute, keyword(value))))
                .toList());
        return negated ? present(attribute, listed) : listed;
    }

    private static Query contains(Filter.Contains contains) {
        String attribute = contains.attribute();
        String text = contains.text();
        if (text.isEmpty()) {
            return contains.negated() ? new MatchNoDocsQuery() : present(attribute, null);
        }
        // The presearcher's handler reads n-grams out of a regular expression, but takes an escape for text.
        boolean plain = text.chars().allMatch(Character::isLetterOrDigit);
        Query found = plain
                ? new RegexpQuery(new Term(attribute, ".*" + text + ".*"))
                : new WildcardQuery(new Term(attribute, "*" + text.replaceAll("([\\\\*?])", "\\\\$1") + "*"));
        return contains.negated() ? present(attribute, found) : found;
    }

    /** The event has the attribute, and the query (if any) does not hold. */
    private static Query present(String attribute, Query excluded) {
        Query required = new TermQuery(new Term(PRESENT, attribute));
        if (excluded == null) {
            return required;
        }
        return new BooleanQuery.Builder().add(required, Occur.FILTER).add(excluded, Occur.MUST_NOT).build();
    }

    private static Query range(Filter.Range range) {
        if (Filter.isEmpty(range)) {
            return new MatchNoDocsQuery();
        }
        return DoublePoint.newRangeQuery(
                range.attribute(),
                range.lowOpen() ? DoublePoint.nextUp(range.low()) : range.low(),
                range.highOpen() ? DoublePoint.nextDown(range.high()) : range.high());
    }
}
