"""Java classes that implement interfaces of Spark's driver and call Python. They are compiled in the
driver's JVM by Janino, the compiler that Spark contains for its generated code.

Spark calls a `FileIndex` from threads of its pools, and creates new threads all the time. py4j opens a
socket and a Python thread for each JVM thread that calls Python, and never closes them. Therefore the classes
are no py4j proxies: all calls to Python go through the few threads of one pool (`Calls`). A Java object has
the token of its Python counterpart. After the JVM has collected the object, `released` returns its token, and
Python drops the counterpart.
"""

from __future__ import annotations

from deltaic.engine.spark.native.listing_classes import FILE_LISTING, FILTER_TREES

PACKAGE = "deltaic.driver."

CALLS = """
package deltaic.driver;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.function.BiFunction;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.Some;

public class Calls {
  static final String NAME = "deltaic-calls";
  private final BiFunction python;
  private final ExecutorService pool;
  private final ReferenceQueue collected = new ReferenceQueue();
  private final Map owners = new ConcurrentHashMap();

  public Calls(BiFunction python, int threads) {
    this.python = python;
    this.pool = Executors.newFixedThreadPool(threads, new ThreadFactory() {
      public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, NAME);
        thread.setDaemon(true);
        return thread;
      }
    });
  }

  static class Owner extends PhantomReference {
    final String token;
    Owner(Object owner, String token, ReferenceQueue queue) {
      super(owner, queue);
      this.token = token;
    }
  }

  public void own(Object owner, String token) {
    Owner reference = new Owner(owner, token, collected);
    owners.put(reference, token);
  }

  /** Tokens, separated by commas, of the objects that the JVM has collected since the last call. */
  public String released() {
    StringBuilder tokens = new StringBuilder();
    for (Object each = collected.poll(); each != null; each = collected.poll()) {
      owners.remove(each);
      tokens.append(tokens.length() == 0 ? "" : ",").append(((Owner) each).token);
    }
    return tokens.toString();
  }

  /** An error with a condition of Delta, such as DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS. Spark does not know its
      SQLSTATE. */
  public static class Failure extends AnalysisException {
    private final String state;
    Failure(String condition, String state, String message) {
      super(message, Option.empty(), Option.empty(), Option.empty(), new Some(condition),
          (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(),
          new QueryContext[0]);
      this.state = state;
    }
    public String getSqlState() { return state; }
  }

  /** Raises an error from the text `CONDITION SQLSTATE message`. */
  public static void fail(String text) {
    String[] parts = text.split(" ", 3);
    String message = "[" + parts[0] + "] " + parts[2] + " SQLSTATE: " + parts[1];
    Platform.throwException(new Failure(parts[0], parts[1], message));
  }

  /** Calls Python. An exception of Spark that Python returns is raised, so that it keeps its condition: py4j
      makes one of its own of each exception that Python raises. */
  private Object answered(String token, Object[] arguments) {
    Object answer = python.apply(token, arguments);
    if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    return answer;
  }

  public Object call(final SparkSession session, final String token, final Object[] arguments) {
    if (NAME.equals(Thread.currentThread().getName())) {
      return answered(token, arguments);
    }
    Future answer = pool.submit(new Callable() {
      public Object call() {
        SparkSession.setActiveSession(session);
        try {
          return answered(token, arguments);
        } finally {
          SparkSession.clearActiveSession();
        }
      }
    });
    try {
      return answer.get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new RuntimeException(error);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof RuntimeException) throw (RuntimeException) error.getCause();
      if (error.getCause() instanceof Error) throw (Error) error.getCause();
      throw new RuntimeException(error.getCause());
    }
  }
}
"""

FILE_INDEX = """
package deltaic.driver;

import java.util.ArrayList;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

public class ScanFiles implements FileIndex {
  private final Calls calls;
  private final SparkSession session;
  private final String token;
  private final String key;
  private final long size;
  private final StructType constants;
  // Referenced so that the original lives as long as this copy: its Python counterpart ends with it.
  private Object original;
  private Seq partitionFilters = (Seq) scala.collection.immutable.Nil$.MODULE$;
  private Seq dataFilters = (Seq) scala.collection.immutable.Nil$.MODULE$;

  public ScanFiles(Calls calls, SparkSession session, String token, String key, long size,
      StructType constants) {
    this.calls = calls;
    this.session = session;
    this.token = token;
    this.key = key;
    this.size = size;
    this.constants = constants;
    calls.own(this, token);
  }

  private ScanFiles(ScanFiles original) {
    this.calls = original.calls;
    this.session = original.session;
    this.token = original.token;
    this.key = original.key;
    this.size = original.size;
    this.constants = original.constants;
    this.original = original;
  }

  /** An index of the same files whose `inputFiles` returns only files that may match the filters. */
  public ScanFiles under(Seq partitionFilters, Seq dataFilters) {
    ScanFiles filtered = new ScanFiles(this);
    filtered.partitionFilters = partitionFilters;
    filtered.dataFilters = dataFilters;
    return filtered;
  }

  public Seq rootPaths() { return (Seq) scala.collection.immutable.Nil$.MODULE$; }
  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    return (Seq) calls.call(session, token, new Object[] {"listFiles", partitionFilters, dataFilters});
  }
  public String[] inputFiles() {
    Seq directories = listFiles(partitionFilters, dataFilters);
    ArrayList paths = new ArrayList();
    for (Iterator each = directories.iterator(); each.hasNext();) {
      for (Iterator file = ((PartitionDirectory) each.next()).files().iterator(); file.hasNext();) {
        paths.add(SparkPath.fromFileStatus(((FileStatusWithMetadata) file.next()).fileStatus()).urlEncoded());
      }
    }
    return (String[]) paths.toArray(new String[0]);
  }
  public void refresh() {}
  public long sizeInBytes() { return size; }
  public StructType partitionSchema() { return constants; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public boolean isTimeTravel() { return false; }
  public String toString() { return key; }
  public int hashCode() { return key.hashCode(); }
  /** A copy of `under` differs from its original, as Spark keeps the old node of a plan if a new one equals
      it. */
  public boolean equals(Object other) {
    return other instanceof ScanFiles && ((ScanFiles) other).key.equals(key)
        && (((ScanFiles) other).original == null) == (original == null);
  }
}
"""

SELECTED = """
package deltaic.driver;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.Metadata;

/** Selects columns of a Dataset by one call from Python. */
public class Selected {
  /** `lines`: four fields for each column, separated by the character 0, which no name contains: the
      column's name in SQL; a new name or ""; "opaque" if Spark must push no condition through the column,
      else ""; metadata as JSON or "". */
  public Dataset of(Dataset rows, String lines) {
    String[] fields = lines.split("\\0", -1);
    Column[] columns = new Column[fields.length / 4];
    for (int number = 0; number < columns.length; number++) {
      String name = fields[4 * number + 1];
      String metadata = fields[4 * number + 3];
      Column column = functions.col(fields[4 * number]);
      if (fields[4 * number + 2].equals("opaque")) {
        column = ExpressionUtils$.MODULE$.column(
            new KnownNullable(ExpressionUtils$.MODULE$.expression(column)));
      }
      if (!metadata.isEmpty()) column = column.as(name, Metadata.fromJson(metadata));
      else if (!name.isEmpty()) column = column.as(name);
      columns[number] = column;
    }
    return rows.select(columns);
  }
}
"""

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

PLAN_FUNCTION = """
package deltaic.driver;

/** A table function without arguments whose result is an analysed plan. */
public class PlanFunction extends scala.runtime.AbstractFunction1 {
  private final Object plan;

  public PlanFunction(Object plan) { this.plan = plan; }

  public Object apply(Object arguments) { return plan; }
}
"""

TABLE_STREAM = """
package deltaic.driver;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A table as a streaming source. Its offsets have the JSON of delta-spark's. */
public class TableStream implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private final Calls calls;
  private final SparkSession session;
  private final String token;
  private final StructType schema;
  private final String place;
  private final ReadLimit limit;

  public TableStream(Calls calls, SparkSession session, String token, StructType schema, String place,
      ReadLimit limit) {
    this.calls = calls;
    this.session = session;
    this.token = token;
    this.schema = schema;
    this.place = place;
    this.limit = limit;
    calls.own(this, token);
  }

  public static class Position extends Offset {
    private final String json;
    public Position(String json) { this.json = json; }
    public String json() { return json; }
  }

  /** Calls a method of the Python side, with the query's thread as its first argument. */
  private Object ask(String method, Object[] more) {
    Object[] question = new Object[more.length + 2];
    question[0] = method;
    question[1] = String.valueOf(Thread.currentThread().getId());
    System.arraycopy(more, 0, question, 2, more.length);
    Object answer = calls.call(session, token, question);
    if (answer instanceof String && ((String) answer).startsWith("!"))
      Calls.fail(((String) answer).substring(1));
    return answer;
  }

  public StructType schema() { return schema; }
  public Option getOffset() { throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit)"); }

  public ReadLimit getDefaultReadLimit() { return limit; }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    Boolean all = Boolean.valueOf(limit.getClass().getSimpleName().equals("ReadAllAvailable"));
    String first = start == null ? null : start.json();
    return new Position((String) ask("latestOffset", new Object[] {first, all}));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() { return null; }

  public Dataset getBatch(Option start, Offset end) {
    String first = start.isEmpty() ? null : ((Offset) start.get()).json();
    LogicalPlan plan = (LogicalPlan) ask("getBatch", new Object[] {first, end.json()});
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session, plan);
  }

  public void prepareForTriggerAvailableNow() { ask("bound", new Object[0]); }
  public void stop() { ask("stop", new Object[0]); }
  public void commit(Offset end) { ask("commit", new Object[] {end.json()}); }
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {
    ask("commit", new Object[] {end.json()});
  }
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException();
  }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) {
    return new Position(json);
  }
  public String toString() { return "DeltaSource[" + place + "]"; }
}
"""

STREAM_ROWS = """
package deltaic.driver;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** Sets `isStreaming` on the leaves of a plan: Spark requires it of the batches of a streaming source. */
public class StreamRows {
  public LogicalPlan of(LogicalPlan plan) {
    if (plan.children().isEmpty()) return leaf(plan);
    ArrayList children = new ArrayList();
    for (Iterator each = plan.children().iterator(); each.hasNext();)
      children.add(of((LogicalPlan) each.next()));
    return (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
  }

  private static LogicalPlan leaf(LogicalPlan plan) {
    Object[] arguments = new Object[plan.productArity()];
    boolean marks = false;
    for (int at = 0; at < arguments.length; at++) {
      boolean is = plan.productElementName(at).equals("isStreaming");
      arguments[at] = is ? Boolean.TRUE : plan.productElement(at);
      marks |= is;
    }
    if (!marks) throw new ClassCastException("a leaf that cannot be one of a stream: " + plan.nodeName());
    return (LogicalPlan) plan.makeCopy(arguments);
  }
}
"""

SOURCES = {
    "Calls": CALLS,
    "FileListing": FILE_LISTING,
    "FilterTrees": FILTER_TREES,
    "ScanFiles": FILE_INDEX,
    "Selected": SELECTED,
    "TableFiles": TABLE_FILES,
    "TrackedFormat": TRACKED_FORMAT,
    "NameFiles": NAME_FILES,
    "PlanTables": PLAN_TABLES,
    "PlanFunction": PLAN_FUNCTION,
}
"""Simple names of the classes and their source texts, in the order in which they are compiled: a class may
use the classes before it."""

FOR_STREAMS = {"TableStream": TABLE_STREAM, "StreamRows": STREAM_ROWS}
"""Classes that only streams need, compiled when the first stream starts; they may use the other classes."""
