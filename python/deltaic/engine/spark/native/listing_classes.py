"""Java classes about the files of a scan: `FileListing` and `FilterTrees` each replace a few dozen py4j calls
of a query by one, and `NameFiles` is the optimizer rule behind `DataFrame.inputFiles`. `driver_classes`
has them in its list of classes to compile."""

from __future__ import annotations

FILE_LISTING = """
package deltaic.driver;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Lists files for Spark: one PartitionDirectory for each. */
public class FileListing {
  /** `rows`: the constants of each file. `positions`: the files to list, as ints of four bytes, or null for
      all. `predicate`: evaluated for the row of each file, which is left out if it is not true, or null. */
  public Seq of(InternalRow[] rows, FileStatus[] statuses, byte[] positions, BasePredicate predicate) {
    ByteBuffer numbers = positions == null ? null : ByteBuffer.wrap(positions);
    int count = positions == null ? statuses.length : positions.length / 4;
    ArrayList directories = new ArrayList(count);
    for (int each = 0; each < count; each++) {
      int number = numbers == null ? each : numbers.getInt();
      if (predicate == null || predicate.eval(rows[number])) {
        directories.add(PartitionDirectory.apply(rows[number], new FileStatus[] {statuses[number]}));
      }
    }
    return CollectionConverters.asScala(directories).toSeq();
  }
}
"""

FILTER_TREES = """
package deltaic.driver;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.sources.Filter;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Catalyst expressions as JSON: an array of the filters of Spark's data sources into which Spark translates
    them, null for an expression that has none. A filter is {"kind": "LessThan", "parts": [...]}, where parts
    are filters, texts (a column's name) and values. A value is {"type": "Long", "text": "5"}. A column in a
    KnownNullable, through which Spark pushes no condition into Parquet files, counts as the column. */
public class FilterTrees {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  public static class Unwrap extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return node instanceof KnownNullable; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return node instanceof KnownNullable ? ((KnownNullable) node).child() : otherwise.apply(node);
    }
  }

  public String of(Seq expressions) {
    ArrayNode trees = NODES.arrayNode();
    for (Iterator each = expressions.iterator(); each.hasNext();) {
      Expression bare = (Expression) ((Expression) each.next()).transformUp(new Unwrap());
      Option filter = DataSourceStrategy$.MODULE$.translateFilter(bare, true);
      if (filter.isEmpty()) trees.addNull();
      else trees.add(tree((Filter) filter.get()));
    }
    return trees.toString();
  }

  private static ObjectNode tree(Filter filter) {
    ObjectNode node = NODES.objectNode();
    node.put("kind", filter.getClass().getSimpleName());
    ArrayNode parts = node.putArray("parts");
    Product product = (Product) filter;
    for (int number = 0; number < product.productArity(); number++) {
      Object part = product.productElement(number);
      if (part instanceof Filter) {
        parts.add(tree((Filter) part));
      } else if (part instanceof Object[]) {
        ArrayNode values = parts.addArray();
        for (int each = 0; each < ((Object[]) part).length; each++)
          values.add(value(((Object[]) part)[each]));
      } else if (number == 0 && part instanceof String) {
        parts.add((String) part);
      } else {
        parts.add(value(part));
      }
    }
    return node;
  }

  /** A java.sql.Timestamp is shown as UTC. It and a java.sql.Date have their milliseconds since 1970. */
  private static ObjectNode value(Object value) {
    ObjectNode node = NODES.objectNode();
    node.put("type", value == null ? "null" : value.getClass().getSimpleName());
    if (value instanceof java.sql.Timestamp) {
      node.put("text", ((java.sql.Timestamp) value).toInstant().toString());
      node.put("milliseconds", ((java.sql.Timestamp) value).getTime());
    } else if (value instanceof java.sql.Date) {
      node.put("text", value.toString());
      node.put("milliseconds", ((java.sql.Date) value).getTime());
    } else if (value instanceof java.math.BigDecimal) {
      node.put("text", ((java.math.BigDecimal) value).toPlainString());
    } else {
      node.put("text", String.valueOf(value));
    }
    return node;
  }
}
"""

NAME_FILES = """
package deltaic.driver;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A rule for optimized plans: afterwards `DataFrame.inputFiles` returns only the files that may match the
    conditions above a scan. */
public class NameFiles extends Rule {
  public static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new NameFiles(); }
  }

  public TreeNode apply(TreeNode plan) { return visit((LogicalPlan) plan, new ArrayList()); }

  private static LogicalPlan visit(LogicalPlan plan, ArrayList conditions) {
    if (plan instanceof LogicalRelation)
      return conditions.isEmpty() ? plan : named((LogicalRelation) plan, conditions);
    ArrayList below = new ArrayList();
    if (plan instanceof Filter) {
      below.addAll(conditions);
      split(((Filter) plan).condition(), below);
    } else if (plan instanceof Project && onlyColumns((Project) plan)) {
      below.addAll(conditions);
    }
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (Iterator each = plan.children().iterator(); each.hasNext();) {
      LogicalPlan child = (LogicalPlan) each.next();
      LogicalPlan visited = visit(child, below);
      changed |= visited != child;
      children.add(visited);
    }
    return changed ? (LogicalPlan) plan.withNewChildren(seq(children)) : plan;
  }

  private static void split(Expression condition, ArrayList into) {
    if (condition instanceof And) {
      split(((And) condition).left(), into);
      split(((And) condition).right(), into);
    } else if (condition.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(condition)) {
      into.add(condition);
    }
  }

  /** True if a projection consists of columns alone and computes nothing. */
  public static boolean onlyColumns(Project plan) {
    for (Iterator each = plan.projectList().iterator(); each.hasNext();) {
      if (!(each.next() instanceof AttributeReference)) return false;
    }
    return true;
  }

  private static LogicalPlan named(LogicalRelation leaf, ArrayList conditions) {
    if (!(leaf.relation() instanceof HadoopFsRelation)) return leaf;
    HadoopFsRelation rows = (HadoopFsRelation) leaf.relation();
    if (!(rows.location() instanceof ScanFiles)) return leaf;
    ArrayList partitionFilters = new ArrayList();
    ArrayList dataFilters = new ArrayList();
    for (java.util.Iterator each = conditions.iterator(); each.hasNext();) {
      Expression condition = (Expression) each.next();
      int constants = 0;
      int all = 0;
      for (Iterator column = condition.references().iterator(); column.hasNext(); all++) {
        if (rows.partitionSchema().getFieldIndex(((Attribute) column.next()).name()).isDefined()) constants++;
      }
      if (all > 0 && constants == all) partitionFilters.add(condition);
      else if (constants == 0) dataFilters.add(condition);
    }
    ScanFiles location = ((ScanFiles) rows.location()).under(seq(partitionFilters), seq(dataFilters));
    Object[] parts = new Object[leaf.productArity()];
    for (int part = 0; part < parts.length; part++) parts[part] = leaf.productElement(part);
    parts[0] = new HadoopFsRelation(location, rows.partitionSchema(), rows.dataSchema(), rows.bucketSpec(),
        rows.fileFormat(), rows.options(), rows.sparkSession());
    return (LogicalPlan) leaf.makeCopy(parts);
  }

  private static Seq seq(java.util.List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}
"""
