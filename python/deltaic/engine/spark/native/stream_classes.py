"""Java classes of structured streams: a table as a source, and the function that writes a batch into a table.
`driver_classes` describes how they are compiled."""

from __future__ import annotations

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

BATCH_FUNCTION = """
package deltaic.driver;

import java.util.function.BiFunction;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.unsafe.Platform;

/** The function of `foreachBatch` for a stream into a table. Spark wraps what the function raises as an error
    of the user's function, unless it is an error of Spark (a SparkThrowable). Python is called in the query's
    own thread, because the jobs of a batch belong to this thread. */
public class BatchFunction implements VoidFunction2 {
  private final BiFunction python;

  public BatchFunction(BiFunction python) { this.python = python; }

  /** Writes a batch. Python returns null, an exception of the JVM, or a text for `Calls.fail`. */
  public void call(Object rows, Object number) {
    Object error = python.apply(rows, number);
    if (error instanceof Throwable) Platform.throwException((Throwable) error);
    if (error != null) Calls.fail((String) error);
  }
}
"""
