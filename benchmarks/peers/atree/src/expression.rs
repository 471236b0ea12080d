//! Filter trees to the text of a-tree's own language.

use serde_json::Value;

/// The tree as an expression, or what the language has no operator for.
pub fn render(tree: &Value) -> Result<String, String> {
    let items = tree.as_array().ok_or("a filter is not an array")?;
    let kind = items[0].as_str().unwrap_or("");
    let name = || items[1].as_str().unwrap_or("").to_string();
    match kind {
        "and" | "or" => {
            let children: Result<Vec<_>, _> = items[1..].iter().map(render).collect();
            Ok(format!("({})", children?.join(&format!(" {kind} "))))
        }
        "not" => Ok(format!("(not ({}))", render(&items[1])?)),
        "cmp" => Ok(comparison(&name(), items[2].as_str().unwrap_or(""), &items[3])),
        "between" => {
            let name = name();
            Ok(format!("({name} >= {} and {name} <= {})", items[2], items[3]))
        }
        "in" => Ok(format!("({} in {})", name(), items[2])),
        other => Err(format!("no operator for {other} on strings")),
    }
}

// A Boolean attribute is a predicate by itself: the language has no literals for true and false.
fn comparison(name: &str, operator: &str, value: &Value) -> String {
    match (value.as_bool(), operator) {
        (Some(expected), "=" | "!=") if expected == (operator == "=") => name.to_string(),
        (Some(_), _) => format!("(not {name})"),
        (None, "!=") => format!("({name} <> {value})"),
        (None, _) => format!("({name} {operator} {value})"),
    }
}
