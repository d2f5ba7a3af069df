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
from deltaic.engine.spark.native.stream_classes import BATCH_FUNCTION, STREAM_ROWS, TABLE_STREAM

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

  /** An error with a condition of Delta, such as DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS, or null. Spark does not
      know its SQLSTATE. */
  public static class Failure extends AnalysisException {
    private final String state;
    Failure(String condition, String state, String message) {
      super(message, Option.empty(), Option.empty(), Option.empty(), Option.apply(condition),
          (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(),
          new QueryContext[0]);
      this.state = state;
    }
    public String getSqlState() { return state; }
  }

  /** Raises an error from the text `CONDITION SQLSTATE message`, or `- - message` without a condition. */
  public static void fail(String text) {
    String[] parts = text.split(" ", 3);
    boolean named = !parts[0].equals("-");
    String message = named ? "[" + parts[0] + "] " + parts[2] + " SQLSTATE: " + parts[1] : parts[2];
    Platform.throwException(new Failure(named ? parts[0] : null, named ? parts[1] : null, message));
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

FOR_STREAMS = {"TableStream": TABLE_STREAM, "StreamRows": STREAM_ROWS, "BatchFunction": BATCH_FUNCTION}
"""Classes that only streams need, compiled when the first stream starts; they may use the other classes."""
