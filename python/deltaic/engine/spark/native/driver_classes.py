"""Java classes that implement interfaces of Spark's driver and call Python. They are compiled in the
driver's JVM by Janino, the compiler that Spark contains for its generated code.

Spark calls a `FileIndex` from threads of its pools, and creates new threads all the time. py4j opens a
socket and a Python thread for each JVM thread that calls Python, and never closes them. Therefore the classes
are no py4j proxies: all calls to Python go through the few threads of one pool (`Calls`). A Java object has
the token of its Python counterpart. After the JVM has collected the object, `released` returns its token, and
Python drops the counterpart.
"""

from __future__ import annotations

from deltaic.engine.spark.native.leaf_classes import PLAN_TABLES, TABLE_FILES, TRACKED_FORMAT
from deltaic.engine.spark.native.listing_classes import FILE_LISTING, FILTER_TREES, NAME_FILES

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
      Platform.throwException(error);
      return null;
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

  /** The number by which the Python side knows this source. */
  public String token() { return token; }

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
  public String toString() {
    return "DeltaSource[" + (place.contains("://") ? "" : "file:") + place + "]";
  }
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
