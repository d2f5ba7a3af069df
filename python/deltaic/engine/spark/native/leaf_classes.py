"""Java classes of the leaf that stands for a Delta table in an analysed plan, and the optimizer rule that
replaces it by a scan. `driver_classes` has them in its list of classes to compile."""

from __future__ import annotations

TABLE_FILES = """
package deltaic.driver;

import java.util.Arrays;
import java.util.HashSet;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The leaf of a Delta table in an analysed plan, until `PlanTables` replaces it by a version's scan. */
public class TableFiles implements FileIndex {
  private final Calls calls;
  private final SparkSession session;
  private final String token;
  private final String key;
  private final long size;
  private final Seq roots;
  private final HashSet partitions;

  /** `root`: the table's location, by which `Catalog.refreshByPath` finds cached rows; "" for a leaf of a
      fixed version, whose cached rows stay valid. `partitions`: names of the partition columns, separated by
      the character 0. */
  public TableFiles(Calls calls, SparkSession session, String token, String key, long size, String root,
      String partitions) {
    this.partitions = new HashSet(Arrays.asList((Object[]) partitions.split("\\0", -1)));
    this.calls = calls;
    this.session = session;
    this.token = token;
    this.key = key;
    this.size = size;
    Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
    this.roots = root.isEmpty() ? none : (Seq) none.prepended(new Path(root));
    calls.own(this, token);
  }

  /** The analysed plan of the table's rows. `planning`: a text that is the same within one query.
      `metadata`: the type of the column _metadata as JSON, if the plan must have it as its last column, else
      null. */
  public LogicalPlan plan(String planning, String metadata) {
    return (LogicalPlan) answer(new Object[] {"plan", planning, metadata});
  }

  /** Values, as text, of aggregates over the rows for which all conditions are true; null for NULL. The
      result itself is null if data files must be read to compute them, as for a condition on another than a
      partition column. `aggregates`: "count", "min column" or "max column" on each line. */
  public Object[] totals(String planning, String aggregates, Seq conditions) {
    for (Iterator each = conditions.iterator(); each.hasNext();) {
      for (Iterator column = ((Expression) each.next()).references().iterator(); column.hasNext();) {
        if (!partitions.contains(((Attribute) column.next()).name())) return null;
      }
    }
    Object answer = answer(new Object[] {"totals", planning, aggregates, conditions});
    return answer == null ? null : ((java.util.List) answer).toArray();
  }

  private Object answer(Object[] arguments) {
    Object answer = calls.call(session, token, arguments);
    if (answer instanceof String) Calls.fail((String) answer);
    return answer;
  }

  public Seq rootPaths() { return roots; }
  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    throw new IllegalStateException("the plan of a Delta table has not been optimized");
  }
  public String[] inputFiles() { return new String[0]; }
  public void refresh() {}
  public long sizeInBytes() { return size; }
  public StructType partitionSchema() { return new StructType(); }
  public Option metadataOpsTimeNs() { return Option.empty(); }
  public boolean isTimeTravel() { return false; }
  public String toString() { return key; }
  public int hashCode() { return key.hashCode(); }
  public boolean equals(Object other) {
    return other instanceof TableFiles && ((TableFiles) other).key.equals(key);
  }
}
"""

TRACKED_FORMAT = """
package deltaic.driver;

import java.util.ArrayList;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The format of the leaf of a table with row tracking: the column _metadata has further fields, by which
    `PlanTables` asks for them. The format reads no file, because `PlanTables` replaces the leaf. */
public class TrackedFormat extends ParquetFileFormat {
  private final String[] names;

  /** `names`: the further fields, separated by spaces. */
  public TrackedFormat(String names) { this.names = names.split(" "); }

  public Seq metadataSchemaFields() {
    ArrayList fields = new ArrayList();
    for (Iterator each = super.metadataSchemaFields().iterator(); each.hasNext();) fields.add(each.next());
    for (int each = 0; each < names.length; each++) {
      fields.add(new StructField(names[each], DataTypes.LongType, false, Metadata.empty()));
    }
    return CollectionConverters.asScala(fields).toSeq();
  }
}
"""

PLAN_TABLES = """
package deltaic.driver;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.Some;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An optimizer rule that replaces the leaf of each table by the scan of one version. */
public class PlanTables extends Rule {
  private static final Map plannings = Collections.synchronizedMap(new WeakHashMap());
  private static final Map installed = Collections.synchronizedMap(new WeakHashMap());
  private static final AtomicLong numbers = new AtomicLong();

  public static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new PlanTables(); }
  }

  /** Adds the rule to the session and to sessions that are created from it. */
  public String install(org.apache.spark.sql.classic.SparkSession session) {
    if (installed.put(session.extensions(), Boolean.TRUE) == null) {
      session.extensions().injectOptimizerRule(new Builder());
      session.extensions().injectPreCBORule(new NameFiles.Builder());
    }
    return ruleName();
  }

  public TreeNode apply(TreeNode plan) {
    return holdsTable((LogicalPlan) plan) ? visit((LogicalPlan) plan, planning()) : plan;
  }

  /** A text for the query that this thread plans. Spark optimizes each subquery on its own, but all parts of
      a query share one tracker, which therefore identifies the query. */
  private static String planning() {
    Option tracker = org.apache.spark.sql.catalyst.QueryPlanningTracker$.MODULE$.get();
    if (tracker.isEmpty()) return Long.toString(numbers.incrementAndGet());
    synchronized (plannings) {
      Object number = plannings.get(tracker.get());
      if (number == null) plannings.put(tracker.get(), number = Long.toString(numbers.incrementAndGet()));
      return (String) number;
    }
  }

  private static TableFiles tableOf(Object plan) {
    if (!(plan instanceof LogicalRelation)
        || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return location instanceof TableFiles ? (TableFiles) location : null;
  }

  public static boolean holdsTable(LogicalPlan plan) {
    for (Iterator leaves = plan.collectLeaves().iterator(); leaves.hasNext();) {
      if (tableOf(leaves.next()) != null) return true;
    }
    return false;
  }

  private static LogicalPlan visit(LogicalPlan plan, String planning) {
    TableFiles table = tableOf(plan);
    if (table != null) return scan((LogicalRelation) plan, table, planning);
    if (plan instanceof Aggregate) {
      LogicalPlan row = totals((Aggregate) plan, planning);
      if (row != null) return row;
    }
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (Iterator each = plan.children().iterator(); each.hasNext();) {
      LogicalPlan child = (LogicalPlan) each.next();
      LogicalPlan planned = visit(child, planning);
      changed |= planned != child;
      children.add(planned);
    }
    return changed ? (LogicalPlan) plan.withNewChildren(seq(children)) : plan;
  }

  /** The scan that replaces a leaf. Its columns get the expression ids of the leaf's, as the rest of the
      plan uses them. */
  private static LogicalPlan scan(LogicalRelation leaf, TableFiles table, String planning) {
    String metadata = null;
    Seq names = leaf.relation().schema().toSeq();
    HashMap own = new HashMap();
    for (Iterator each = names.iterator(); each.hasNext();) {
      own.put(((org.apache.spark.sql.types.StructField) each.next()).name(), Integer.valueOf(own.size()));
    }
    for (Iterator each = leaf.output().iterator(); each.hasNext();) {
      AttributeReference column = (AttributeReference) each.next();
      if (!own.containsKey(column.name())) metadata = column.dataType().json();
    }
    LogicalPlan rows = table.plan(planning, metadata);
    ArrayList columns = new ArrayList();
    for (Iterator each = leaf.output().iterator(); each.hasNext();) {
      AttributeReference column = (AttributeReference) each.next();
      Object index = own.get(column.name());
      AttributeReference source = (AttributeReference) rows.output().apply(
          index == null ? own.size() : ((Integer) index).intValue());
      Option columnMetadata = index == null ? scala.Option.empty() : (Option) new Some(column.metadata());
      columns.add(org.apache.spark.sql.catalyst.expressions.Alias$.MODULE$.apply(
          source, column.name(), column.exprId(), column.qualifier(), columnMetadata,
          (Seq) scala.collection.immutable.Nil$.MODULE$));
    }
    return new Project(seq(columns), rows);
  }

  /** The row of COUNT, MIN and MAX over a whole table or some of its partitions, if the log has all values,
      else null. */
  private static LogicalPlan totals(Aggregate plan, String planning) {
    LogicalPlan below = plan.child();
    ArrayList conditions = new ArrayList();
    while (below instanceof Filter || below instanceof Project && NameFiles.onlyColumns((Project) below)) {
      if (below instanceof Filter) conditions.add(((Filter) below).condition());
      below = (LogicalPlan) below.children().head();
    }
    TableFiles table = tableOf(below);
    if (table == null || !plan.groupingExpressions().isEmpty()) return null;
    StringBuilder aggregates = new StringBuilder();
    ArrayList output = new ArrayList();
    for (Iterator each = plan.aggregateExpressions().iterator(); each.hasNext();) {
      Object named = each.next();
      String name = named instanceof Alias ? nameOf(((Alias) named).child()) : null;
      if (name == null) return null;
      aggregates.append(aggregates.length() == 0 ? "" : "\\n").append(name);
      output.add(((Alias) named).toAttribute());
    }
    Object[] values = aggregates.length() == 0 ? null
        : table.totals(planning, aggregates.toString(), seq(conditions));
    if (values == null) return null;
    Object[] row = new Object[values.length];
    for (int each = 0; each < row.length; each++) {
      row[each] = values[each] == null ? null
          : valueOf(values[each].toString(), ((Attribute) output.get(each)).dataType().typeName());
    }
    ArrayList rows = new ArrayList();
    rows.add(RowFactory.create(row));
    return LocalRelation.fromExternalRows(seq(output), seq(rows));
  }

  private static String nameOf(Object expression) {
    if (!(expression instanceof AggregateExpression)) return null;
    AggregateExpression whole = (AggregateExpression) expression;
    if (whole.isDistinct() || whole.filter().isDefined()) return null;
    Object function = whole.aggregateFunction();
    if (function instanceof Count) {
      for (Iterator each = ((Count) function).children().iterator(); each.hasNext();) {
        Object child = each.next();
        if (!(child instanceof Literal) || ((Literal) child).value() == null) return null;
      }
      return "count";
    }
    Object column = function instanceof Min ? ((Min) function).child()
        : function instanceof Max ? ((Max) function).child() : null;
    if (!(column instanceof AttributeReference)) return null;
    String type = ((AttributeReference) column).dataType().typeName();
    if (!(type.equals("date") || type.equals("long") || type.equals("integer") || type.equals("short")
        || type.equals("byte"))) {
      return null;
    }
    return (function instanceof Min ? "min " : "max ") + ((AttributeReference) column).name();
  }

  private static Object valueOf(String text, String type) {
    if (type.equals("integer")) return Integer.valueOf(text);
    if (type.equals("short")) return Short.valueOf(text);
    if (type.equals("byte")) return Byte.valueOf(text);
    if (type.equals("date")) return java.sql.Date.valueOf(text);
    return Long.valueOf(text);
  }

  private static Seq seq(java.util.List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}
"""
