"""Arguments by name: `mask(name, digitChar => 'd')` is `mask(name, 'X', 'x', 'd')`."""

from __future__ import annotations

from sqlglot import exp

from deltaic.errors import InvalidArgumentError

_PARAMETERS = {
    "mask": ("str", "upperChar", "lowerChar", "digitChar", "otherChar"),
    **dict.fromkeys(("explode", "explode_outer", "posexplode", "posexplode_outer"), ("collection",)),
    **dict.fromkeys(("inline", "inline_outer", "variant_explode", "variant_explode_outer"), ("input",)),
}
"""Functions of which Spark takes arguments by name, and the names of their parameters."""
_DEFAULTS = {"upperChar": "X", "lowerChar": "x", "digitChar": "n"}


def positional(call: exp.Anonymous) -> exp.Anonymous:
    """Returns the call with its arguments in the order of the function's parameters. Raises
    InvalidArgumentError for a name that is none of them."""
    if not any(isinstance(each, exp.Kwarg) for each in call.expressions):
        return call
    name = str(call.this).lower()
    parameters = _PARAMETERS.get(name)
    if parameters is None:
        raise InvalidArgumentError(
            f"[NAMED_PARAMETERS_NOT_SUPPORTED.NAMED_PARAMETERS_NOT_SUPPORTED] {name} takes no named arguments"
        )
    given: dict[str, exp.Expr] = {}
    for place, argument in enumerate(call.expressions):
        is_named = isinstance(argument, exp.Kwarg)
        if not is_named and given.keys() - parameters[:place]:
            message = (
                f"[UNEXPECTED_POSITIONAL_ARGUMENT] {name} has an argument without a name behind one with a"
                " name"
            )
            raise InvalidArgumentError(message, found=argument.sql(dialect="databricks"))
        wanted = (
            argument.this.name.lower()
            if is_named
            else parameters[place].lower()
            if place < len(parameters)
            else ""
        )
        parameter = next((each for each in parameters if each.lower() == wanted), None)
        if parameter is None:
            raise InvalidArgumentError(
                f"[UNRECOGNIZED_PARAMETER_NAME] {name} has no such parameter",
                found=wanted or None,
                expected=", ".join(parameters),
            )
        if parameter in given:
            message = (
                "[DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE] a parameter is"
                " given twice"
            )
            raise InvalidArgumentError(message, found=parameter)
        given[parameter] = argument.expression if is_named else argument
    if parameters[0] not in given:
        raise InvalidArgumentError(
            f"[REQUIRED_PARAMETER_NOT_FOUND] {name} needs a parameter", expected=parameters[0]
        )
    last = max(parameters.index(each) for each in given)
    filled = [given.get(each) or exp.Literal.string(_DEFAULTS[each]) for each in parameters[: last + 1]]
    return exp.Anonymous(this=call.this, expressions=filled)
