//! Converts predicates from `pyarrow.dataset.Expression`, as DuckDB and Polars pass them to a dataset.
//!
//! An expression pickles to an Arrow IPC file. Its one batch holds the literals and options, each a column of
//! one row. The schema's metadata is the tree in prefix order, an *ordered* list of pairs (`call` name …
//! `end` name, `field_ref` name, `nested_field_ref` count, `literal` column, `options` column). Keys repeat,
//! which a map would lose, so the pairs are read from the footer. A part of the expression that the predicate
//! tree cannot express exactly is returned to the caller.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::ipc::reader::FileReader;
use arrow::ipc::root_as_footer;
use arrow::record_batch::RecordBatch;

use super::parse::Resolve;
use super::{Column, Operator, Predicate};
use crate::error::{Error, Kind, Result};

/// Maximum depth of calls, where a chain of one connective counts as one call. Deeper trees are returned to
/// the caller.
const MAX_DEPTH: usize = 200;

/// Converts the pickled form of an expression. Returns the part that a predicate can express, and whether
/// that is the whole expression.
pub fn from_pickle(bytes: &[u8], resolve: &Resolve) -> Result<(Option<Predicate>, bool)> {
    let pairs = pairs(bytes)?;
    let literals = literals(bytes)?;
    let Some(tree) = parse(&pairs)? else { return Ok((None, false)) };
    Ok(convertible_part(&tree, &Context { literals: &literals, resolve }))
}

fn malformed(what: &str) -> Error {
    Error::new(Kind::InvalidArgument, "a pyarrow expression in an unknown form").found(what)
}

fn pairs(bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let length_at = bytes.len().checked_sub(10).ok_or_else(|| malformed("too few bytes"))?;
    let length = bytes.get(length_at..length_at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let footer_at = length
        .and_then(|l| length_at.checked_sub(l as usize))
        .ok_or_else(|| malformed("a wrong footer length"))?;
    let footer = root_as_footer(&bytes[footer_at..length_at]).map_err(|e| malformed(&e.to_string()))?;
    let metadata = footer.schema().and_then(|s| s.custom_metadata()).ok_or_else(|| malformed("no tree"))?;
    Ok(metadata
        .iter()
        .map(|kv| (kv.key().unwrap_or_default().to_owned(), kv.value().unwrap_or_default().to_owned()))
        .collect())
}

fn literals(bytes: &[u8]) -> Result<Option<RecordBatch>> {
    let mut reader =
        FileReader::try_new(std::io::Cursor::new(bytes), None).map_err(|e| malformed(&e.to_string()))?;
    reader.next().transpose().map_err(|e| malformed(&e.to_string()))
}

enum Node {
    Call(String, Vec<Node>, Option<usize>),
    Field(Vec<String>),
    Literal(usize),
}

/// A call whose end is not parsed yet. `joined`: number of open calls of the same connective within it, whose
/// arguments are added to it.
struct OpenCall {
    name: String,
    args: Vec<Node>,
    options: Option<usize>,
    joined: usize,
}

impl OpenCall {
    /// True if `name(a, name(b, c))` equals `name(a, b, c)`.
    fn joins(&self, name: &str) -> bool {
        self.name == name && matches!(name, "and_kleene" | "or_kleene" | "and" | "or")
    }
}

/// Parses a tree. `None` if it is nested too deeply. Chains of one connective become one call, without
/// recursion, as pyarrow nests `a | b | c` once for each operand.
fn parse(pairs: &[(String, String)]) -> Result<Option<Node>> {
    let mut open: Vec<OpenCall> = Vec::new();
    let mut rest = pairs.iter();
    loop {
        let (key, value) = rest.next().ok_or_else(|| malformed("an unfinished tree"))?;
        let number = || value.parse::<usize>().map_err(|_| malformed(value));
        let done = match key.as_str() {
            "field_ref" => Node::Field(vec![value.clone()]),
            "literal" => Node::Literal(number()?),
            "nested_field_ref" => {
                let names = rest.by_ref().take(number()?);
                let path = names.map(|(key, name)| (key == "field_ref").then(|| name.clone()));
                Node::Field(
                    path.collect::<Option<_>>().ok_or_else(|| malformed("a path that is not of names"))?,
                )
            }
            "call" => {
                let depth = open.len();
                match open.last_mut().filter(|call| call.joins(value)) {
                    Some(call) => call.joined += 1,
                    None if depth == MAX_DEPTH => return Ok(None),
                    None => open.push(OpenCall {
                        name: value.clone(),
                        args: Vec::new(),
                        options: None,
                        joined: 0,
                    }),
                }
                continue;
            }
            "options" => {
                open.last_mut().ok_or_else(|| malformed("options of nothing"))?.options = Some(number()?);
                continue;
            }
            "end" => {
                let call = open.pop().ok_or_else(|| malformed("an end of nothing"))?;
                if call.joined > 0 {
                    open.push(OpenCall { joined: call.joined - 1, ..call });
                    continue;
                }
                Node::Call(call.name, call.args, call.options)
            }
            other => return Err(malformed(other)),
        };
        match open.last_mut() {
            Some(call) => call.args.push(done),
            None => return Ok(Some(done)),
        }
    }
}

struct Context<'a> {
    literals: &'a Option<RecordBatch>,
    resolve: &'a Resolve<'a>,
}

/// Converts each part of a conjunction that a predicate can express; any other node is converted as a whole
/// or not at all.
fn convertible_part(node: &Node, context: &Context) -> (Option<Predicate>, bool) {
    match node {
        Node::Call(name, args, _) if name == "and_kleene" || name == "and" => {
            let parts: Vec<_> = args.iter().map(|arg| convertible_part(arg, context)).collect();
            let exact = parts.iter().all(|(_, exact)| *exact);
            (parts.into_iter().filter_map(|(part, _)| part).reduce(Predicate::and), exact)
        }
        _ => {
            let predicate = context.predicate(node);
            let exact = predicate.is_some();
            (predicate, exact)
        }
    }
}

impl Context<'_> {
    fn predicate(&self, node: &Node) -> Option<Predicate> {
        match node {
            Node::Field(_) => {
                let column = self.column(node)?;
                (column.data_type == DataType::Boolean).then(|| {
                    Predicate::Compare(
                        column,
                        Operator::Eq,
                        Arc::new(arrow::array::BooleanArray::from(vec![true])),
                    )
                })
            }
            Node::Literal(_) => {
                let value = self.literal(node)?;
                let value = value.as_boolean_opt()?;
                Some(Predicate::Constant(value.is_valid(0).then(|| value.value(0))))
            }
            Node::Call(name, args, options) => self.predicate_of_call(name, args, *options),
        }
    }

    fn predicate_of_call(&self, name: &str, args: &[Node], options: Option<usize>) -> Option<Predicate> {
        let all = || args.iter().map(|arg| self.predicate(arg)).collect::<Option<Vec<_>>>();
        match (name, args) {
            ("and_kleene", _) => Some(Predicate::And(all()?)),
            ("or_kleene", _) => Some(Predicate::Or(all()?)),
            ("invert", [arg]) => Some(Predicate::Not(Box::new(self.predicate(arg)?))),
            ("is_valid", [arg]) => Some(Predicate::Not(Box::new(Predicate::IsNull(self.column(arg)?)))),
            ("is_null", [arg]) => {
                let nan_is_null = self
                    .option(options, "nan_is_null")
                    .is_some_and(|v| v.as_boolean_opt().is_none_or(|v| v.value(0)));
                (!nan_is_null).then_some(Predicate::IsNull(self.column(arg)?))
            }
            ("starts_with", [arg]) => {
                let ignore_case = self.option(options, "ignore_case")?.as_boolean_opt()?.value(0);
                let prefix = self.option(options, "pattern")?.as_string_opt::<i32>()?.value(0).to_owned();
                let column = self.column(arg)?;
                (!ignore_case && column.data_type == DataType::Utf8)
                    .then_some(Predicate::StartsWith(column, prefix))
            }
            // pyarrow's is_in is never null: a null is in the set if the set has a null.
            ("is_in", [arg]) => {
                let (column, values, has_null) = self.membership(arg, options)?;
                let is_null = Predicate::IsNull(column.clone());
                let among = Predicate::In(column, values.into(), false);
                Some(if has_null {
                    Predicate::Or(vec![is_null, among])
                } else {
                    Predicate::And(vec![Predicate::Not(Box::new(is_null)), among])
                })
            }
            // SQL's IN: if_else(is_valid(a), is_in(a, …), null)
            ("if_else", [Node::Call(valid, tested, _), Node::Call(is_in, arg, options), otherwise])
                if valid == "is_valid" && is_in == "is_in" && self.literal(otherwise)?.is_null(0) =>
            {
                let (column, values, has_null) = self.membership(arg.first()?, *options)?;
                (self.column(tested.first()?)? == column && !has_null).then_some(Predicate::In(
                    column,
                    values.into(),
                    false,
                ))
            }
            (_, [left, right]) => self.comparison(operator(name)?, left, right),
            _ => None,
        }
    }

    fn comparison(&self, operator: Operator, left: &Node, right: &Node) -> Option<Predicate> {
        if matches!(left, Node::Literal(_)) && !matches!(right, Node::Literal(_)) {
            return self.comparison(operator.flipped(), right, left);
        }
        let (column, literal) = (self.column(left)?, self.literal(right)?);
        if literal.is_null(0) {
            return Some(Predicate::Constant(None));
        }
        Some(Predicate::Compare(column.clone(), operator, exactly(&literal, &column.data_type)?))
    }

    fn membership(&self, arg: &Node, options: Option<usize>) -> Option<(Arc<Column>, ArrayRef, bool)> {
        let matching = self.option(options, "null_matching_behavior")?;
        if arrow::compute::cast(&matching, &DataType::Int64)
            .ok()?
            .as_primitive::<arrow::datatypes::Int64Type>()
            .value(0)
            != 0
        {
            return None; // only MATCH is supported here
        }
        let set = self.option(options, "value_set")?.as_list_opt::<i32>()?.value(0);
        let values = arrow::compute::filter(&set, &arrow::compute::is_not_null(&set).ok()?).ok()?;
        let column = self.column(arg)?;
        let has_null = values.len() < set.len();
        Some((column.clone(), exactly(&values, &column.data_type)?, has_null))
    }

    fn option(&self, options: Option<usize>, field: &str) -> Option<ArrayRef> {
        self.literals.as_ref()?.columns().get(options?)?.as_struct_opt()?.column_by_name(field).cloned()
    }

    fn literal(&self, node: &Node) -> Option<ArrayRef> {
        let Node::Literal(index) = node else { return None };
        self.literals.as_ref()?.columns().get(*index).cloned()
    }

    /// Returns a column, also within a cast that keeps all values and their order.
    fn column(&self, node: &Node) -> Option<Arc<Column>> {
        match node {
            Node::Field(path) => (self.resolve)(path).ok(),
            Node::Call(name, args, options) if name == "cast" => {
                let column = self.column(args.first()?)?;
                let to = self.option(*options, "to_type")?;
                keeps_order(&column.data_type, to.data_type()).then_some(column)
            }
            _ => None,
        }
    }
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        "equal" => Operator::Eq,
        "not_equal" => Operator::NotEq,
        "less" => Operator::Lt,
        "less_equal" => Operator::LtEq,
        "greater" => Operator::Gt,
        "greater_equal" => Operator::GtEq,
        _ => return None,
    })
}

fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let integer_bits = |t: &DataType| t.is_signed_integer().then(|| t.primitive_width().unwrap_or(0));
    match (integer_bits(from), integer_bits(to)) {
        (Some(from), Some(to)) => from <= to,
        _ => {
            from == to
                || matches!(
                    (from, to),
                    (DataType::Float32, DataType::Float64)
                        | (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View)
                )
        }
    }
}

/// Returns literals in the column's type, if both are of one kind and no value changes.
fn exactly(values: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Some(values.clone());
    }
    let number = |t: &DataType| t.is_numeric();
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let bytes = |t: &DataType| {
        matches!(
            t,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
        )
    };
    let same_kind = match (from, to) {
        (DataType::Timestamp(_, a), DataType::Timestamp(_, b)) => a.is_some() == b.is_some(),
        (DataType::Date32 | DataType::Date64, DataType::Date32) => true,
        _ => number(from) && number(to) || text(from) && text(to) || bytes(from) && bytes(to),
    };
    let safe = CastOptions { safe: false, ..CastOptions::default() };
    let cast = same_kind.then(|| cast_with_options(values, to, &safe).ok()).flatten()?;
    let back = cast_with_options(&cast, from, &safe).ok()?;
    (back.as_ref() == values.as_ref()).then_some(cast)
}
