//! Converts predicates from and to JSON, the form in which the Python layer passes them (`_core.pyi`, class
//! `Predicate`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::{Column, Operator, Predicate};
use crate::error::{Error, Kind, Result};
use crate::schema::partition_values::{format_array, parse_array};

/// Finds a column by its logical path, in any case.
pub type Resolve<'a> = dyn Fn(&[String]) -> Result<Arc<Column>> + 'a;

/// Maximum depth of a tree; a deeper one is an error, so that recursion does not overflow the stack.
const MAX_DEPTH: usize = 200;

/// Minimum number of equalities of one column in a chain that are replaced by a list.
const MANY_EQUALITIES: usize = 16;

#[derive(Serialize, Deserialize)]
#[serde(tag = "op", deny_unknown_fields)]
enum Node {
    #[serde(rename = "=")]
    Eq { column: Vec<String>, literal: String },
    #[serde(rename = "!=")]
    NotEq { column: Vec<String>, literal: String },
    #[serde(rename = "<")]
    Lt { column: Vec<String>, literal: String },
    #[serde(rename = "<=")]
    LtEq { column: Vec<String>, literal: String },
    #[serde(rename = ">")]
    Gt { column: Vec<String>, literal: String },
    #[serde(rename = ">=")]
    GtEq { column: Vec<String>, literal: String },
    #[serde(rename = "in")]
    In { column: Vec<String>, literals: Vec<Option<String>> },
    #[serde(rename = "starts_with")]
    StartsWith { column: Vec<String>, literal: String },
    #[serde(rename = "is_null")]
    IsNull { column: Vec<String> },
    #[serde(rename = "not")]
    Not { arg: Box<Node> },
    #[serde(rename = "and")]
    And { args: Vec<Node> },
    #[serde(rename = "or")]
    Or { args: Vec<Node> },
    #[serde(rename = "true")]
    True,
    #[serde(rename = "false")]
    False,
    #[serde(rename = "null")]
    Null,
}

/// Parses JSON text to a tree.
pub fn from_json(text: &str, resolve: &Resolve) -> Result<Predicate> {
    let node: Node = serde_json::from_str(text).map_err(|e| {
        Error::new(Kind::InvalidArgument, "a predicate that is not in its JSON form").found(text).caused_by(e)
    })?;
    build(node, resolve, 0)
}

fn build(node: Node, resolve: &Resolve, depth: usize) -> Result<Predicate> {
    if depth > MAX_DEPTH {
        return Err(Error::new(Kind::InvalidArgument, "a predicate nested too deeply")
            .expected(format!("at most {MAX_DEPTH} levels")));
    }
    let all = |args: Vec<Node>| {
        args.into_iter().map(|arg| build(arg, resolve, depth + 1)).collect::<Result<Vec<_>>>()
    };
    let compare = |column: Vec<String>, operator, literal: String| {
        let column = resolve(&column)?;
        let literal = literals(&column, vec![Some(literal)])?;
        Ok(Predicate::Compare(column, operator, literal))
    };
    match node {
        Node::Eq { column, literal } => compare(column, Operator::Eq, literal),
        Node::NotEq { column, literal } => compare(column, Operator::NotEq, literal),
        Node::Lt { column, literal } => compare(column, Operator::Lt, literal),
        Node::LtEq { column, literal } => compare(column, Operator::LtEq, literal),
        Node::Gt { column, literal } => compare(column, Operator::Gt, literal),
        Node::GtEq { column, literal } => compare(column, Operator::GtEq, literal),
        Node::In { column, literals: texts } => {
            let column = resolve(&column)?;
            let has_null = texts.iter().any(Option::is_none);
            let present = texts.into_iter().filter(Option::is_some).collect();
            let values = literals(&column, present)?;
            Ok(Predicate::In(column, values.into(), has_null))
        }
        Node::StartsWith { column, literal } => {
            let column = resolve(&column)?;
            match column.data_type {
                DataType::Utf8 => Ok(Predicate::StartsWith(column, literal)),
                _ => Err(Error::new(Kind::InvalidArgument, "a prefix of a column that is not a string")
                    .at(column.path.join("."))
                    .found(&column.data_type)),
            }
        }
        Node::IsNull { column } => Ok(Predicate::IsNull(resolve(&column)?)),
        Node::Not { arg } => Ok(Predicate::Not(Box::new(build(*arg, resolve, depth + 1)?))),
        Node::And { args } => Ok(Predicate::And(memberships(all(args)?, Operator::NotEq)?)),
        Node::Or { args } => Ok(Predicate::Or(memberships(all(args)?, Operator::Eq)?)),
        Node::True => Ok(Predicate::Constant(Some(true))),
        Node::False => Ok(Predicate::Constant(Some(false))),
        Node::Null => Ok(Predicate::Constant(None)),
    }
}

/// Replaces long chains of equalities by lists: `a = 1 OR … OR a = 3000` (`operator` is `=`) becomes `a IN
/// (…)`, and `a != 1 AND …` (`operator` is `!=`) becomes `NOT a IN (…)`. A list needs one look-up for each
/// row, a chain one comparison for each operand. Spark cannot plan an AND of thousands at all.
fn memberships(args: Vec<Predicate>, operator: Operator) -> Result<Vec<Predicate>> {
    let chained = |arg: &Predicate| match arg {
        Predicate::Compare(column, found, literal) if *found == operator => {
            Some((column.clone(), literal.clone()))
        }
        _ => None,
    };
    let mut chains: HashMap<Vec<String>, Vec<ArrayRef>> = HashMap::new();
    for (column, literal) in args.iter().filter_map(chained) {
        chains.entry(column.path.clone()).or_default().push(literal);
    }
    chains.retain(|_, literals| literals.len() >= MANY_EQUALITIES);
    if chains.is_empty() {
        return Ok(args);
    }
    let mut joined = Vec::new();
    for arg in args {
        let chain = chained(&arg).and_then(|(column, _)| Some((chains.get_mut(&column.path)?, column)));
        match chain {
            None => joined.push(arg),
            // The list is at the position of its first literal.
            Some((literals, _)) if literals.is_empty() => {}
            Some((literals, column)) => {
                let literals = std::mem::take(literals);
                let among = Predicate::In(
                    column,
                    concat(&literals.iter().map(AsRef::as_ref).collect::<Vec<_>>())?.into(),
                    false,
                );
                joined.push(if operator == Operator::Eq { among } else { Predicate::Not(Box::new(among)) });
            }
        }
    }
    Ok(joined)
}

/// Parses literals, which are never null. An empty text is a value here; it is null in partition values only.
fn literals(column: &Column, texts: Vec<Option<String>>) -> Result<ArrayRef> {
    let texts = StringArray::from(texts);
    if column.data_type == DataType::Utf8 {
        return Ok(Arc::new(texts));
    }
    let parsed = parse_array(&texts, &column.data_type).map_err(|e| e.at(column.path.join(".")))?;
    if parsed.null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "an empty literal")
            .at(column.path.join("."))
            .expected(&column.data_type));
    }
    Ok(parsed)
}

/// Writes a tree as JSON text, which `from_json` parses to the same tree. Literals of binary columns are an
/// exception: JSON has no text for bytes that are no UTF-8, and an empty text is no literal.
pub fn to_json(predicate: &Predicate) -> Result<String> {
    let node = describe(predicate)?;
    serde_json::to_string(&node)
        .map_err(|e| Error::new(Kind::InvalidArgument, "a predicate without a JSON form").caused_by(e))
}

fn describe(predicate: &Predicate) -> Result<Node> {
    let all = |args: &[Predicate]| args.iter().map(describe).collect::<Result<Vec<_>>>();
    let texts = |values: &ArrayRef| -> Result<Vec<Option<String>>> {
        match values.data_type() {
            DataType::Utf8 => {
                use arrow::array::AsArray;
                Ok(values.as_string::<i32>().iter().map(|t| t.map(str::to_owned)).collect())
            }
            _ => Ok(format_array(values)?.iter().map(|t| t.map(str::to_owned)).collect()),
        }
    };
    Ok(match predicate {
        Predicate::Compare(column, operator, literal) => {
            let column = column.path.clone();
            let literal = texts(literal)?.into_iter().flatten().next().unwrap_or_default();
            match operator {
                Operator::Eq => Node::Eq { column, literal },
                Operator::NotEq => Node::NotEq { column, literal },
                Operator::Lt => Node::Lt { column, literal },
                Operator::LtEq => Node::LtEq { column, literal },
                Operator::Gt => Node::Gt { column, literal },
                Operator::GtEq => Node::GtEq { column, literal },
            }
        }
        Predicate::In(column, values, has_null) => {
            let mut literals = texts(values)?;
            literals.extend(has_null.then_some(None));
            Node::In { column: column.path.clone(), literals }
        }
        Predicate::StartsWith(column, prefix) => {
            Node::StartsWith { column: column.path.clone(), literal: prefix.clone() }
        }
        Predicate::IsNull(column) => Node::IsNull { column: column.path.clone() },
        Predicate::Not(arg) => Node::Not { arg: Box::new(describe(arg)?) },
        Predicate::And(args) => Node::And { args: all(args)? },
        Predicate::Or(args) => Node::Or { args: all(args)? },
        Predicate::Constant(Some(true)) => Node::True,
        Predicate::Constant(Some(false)) => Node::False,
        Predicate::Constant(None) => Node::Null,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Finds one of the columns i (int), s (string), d (double), t (timestamp), n (decimal(10,2)) and p (int,
    /// a partition column).
    pub(crate) fn resolve(path: &[String]) -> Result<Arc<Column>> {
        use arrow::datatypes::TimeUnit::Microsecond;
        let data_type = match path.join(".").as_str() {
            "i" | "p" | "st.x" => DataType::Int32,
            "s" => DataType::Utf8,
            "d" => DataType::Float64,
            "b" => DataType::Boolean,
            "t" => DataType::Timestamp(Microsecond, Some("UTC".into())),
            "n" => DataType::Decimal128(10, 2),
            other => return Err(Error::new(Kind::InvalidArgument, "no such column").found(other)),
        };
        let (partition, physical) = (path == ["p"], path.to_vec());
        Ok(Arc::new(Column { path: path.to_vec(), physical, data_type, partition, was_float: false }))
    }

    #[test]
    fn json_round_trip() {
        for text in [
            r#"{"op":"=","column":["i"],"literal":"5"}"#,
            concat!(
                r#"{"op":"and","args":[{"op":"<","column":["d"],"literal":"NaN"},"#,
                r#"{"op":"not","arg":{"op":"is_null","column":["s"]}}]}"#,
            ),
            r#"{"op":"in","column":["s"],"literals":["","a",null]}"#,
            r#"{"op":"or","args":[{"op":"starts_with","column":["s"],"literal":"x"},{"op":"null"}]}"#,
            r#"{"op":">=","column":["t"],"literal":"2024-01-01T00:00:00.000001Z"}"#,
        ] {
            assert_eq!(to_json(&from_json(text, &resolve).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn long_chains_of_equalities_become_lists() {
        let chain = |op: &str, column: &str, count: usize| {
            (0..count)
                .map(|i| format!(r#"{{"op":"{op}","column":["{column}"],"literal":"{i}"}}"#))
                .collect::<Vec<_>>()
                .join(",")
        };
        let list = |column: &str, count: usize| {
            let literals = (0..count).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(",");
            format!(r#"{{"op":"in","column":["{column}"],"literals":[{literals}]}}"#)
        };
        let (null, few) = (r#"{"op":"is_null","column":["s"]}"#, chain("=", "s", MANY_EQUALITIES - 1));
        for (text, expected) in [
            (
                format!(r#"{{"op":"or","args":[{null},{},{few},{null}]}}"#, chain("=", "i", 20)),
                format!(r#"{{"op":"or","args":[{null},{},{few},{null}]}}"#, list("i", 20)),
            ),
            (
                format!(r#"{{"op":"and","args":[{},{}]}}"#, chain("!=", "i", 20), chain("=", "s", 20)),
                format!(
                    r#"{{"op":"and","args":[{{"op":"not","arg":{}}},{}]}}"#,
                    list("i", 20),
                    chain("=", "s", 20)
                ),
            ),
            (
                format!(r#"{{"op":"or","args":[{}]}}"#, chain("!=", "i", 20)),
                format!(r#"{{"op":"or","args":[{}]}}"#, chain("!=", "i", 20)),
            ),
        ] {
            assert_eq!(to_json(&from_json(&text, &resolve).unwrap()).unwrap(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (text, part) in [
            ("{", "JSON form"),
            (r#"{"op":"=","column":["zz"],"literal":"5"}"#, "zz"),
            (r#"{"op":"=","column":["i"],"literal":"5.5"}"#, "5.5"),
            (r#"{"op":"starts_with","column":["i"],"literal":"5"}"#, "not a string"),
            (r#"{"op":"=","column":["i"],"literal":""}"#, "empty"),
        ] {
            let error = from_json(text, &resolve).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
