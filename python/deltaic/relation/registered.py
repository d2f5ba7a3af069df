"""All families of forms, imported so that each adds itself to the registry."""

from deltaic.relation import collections, conditional, forms_array, forms_format, forms_math, forms_string, forms_time, patterns

__all__ = ["collections", "conditional", "forms_array", "forms_format", "forms_math", "forms_string", "forms_time", "patterns"]
