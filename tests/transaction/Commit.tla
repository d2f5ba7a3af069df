------------------------------- MODULE Commit -------------------------------
(* The commit of one table and of several tables, for the model checker TLC. test_commit_model.py has the same model in Python, runs TLC on
   this one and compares the numbers of states. docs/decisions/several-tables-in-one-commit.md describes the protocol.

   The actors: a transaction T over tables 0 and 1, which may be killed between any two steps; a writer W of one table, which may lose the
   answer to its put-if-absent; a foreign writer F of that table, which does not know intents; helpers (readers and other writers), which
   abort T or write its commit into a log. *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Table,      \* the table that W and F write: 0 or 1
    Conflicts,  \* TRUE if their commits conflict with T
    Off         \* the rule that is left out, "" for none

VARIABLES
    logs,     \* for each table the sequence of its commits: "start", "T", "W" or "F"
    intents,  \* the tables that have an intent of T
    record,   \* the record of T's coordinator: "", "committed" or "aborted"
    step,     \* the next step of T: see Steps
    base,     \* the version of W's snapshot, -1 if it has none
    attempt,  \* the version of a put of W whose answer was lost, -1 if there is none
    toldT,    \* the answer that T's caller has got: "", "committed" or "failed"
    toldW,    \* the answer that W's caller has got: "" or "committed"
    foreign   \* TRUE if F has committed

vars == <<logs, intents, record, step, base, attempt, toldT, toldW, foreign>>
Tables == {0, 1}
Steps == <<"intent 0", "intent 1", "start 0", "start 1", "look", "decide", "roll 0", "roll 1", "done">>
Look == 5
Decide == 6
Done == 9

Has(log, name) == \E i \in DOMAIN log : log[i] = name
Count(log, name) == Cardinality({i \in DOMAIN log : log[i] = name})
With(table, name) == [logs EXCEPT ![table] = Append(@, name)]
PassedBy(table) == Conflicts /\ (Has(logs[table], "W") \/ Has(logs[table], "F"))
RolledForward(table) ==
    IF Has(logs[table], "T") /\ (Off # "one commit, whoever rolls forward" \/ Count(logs[table], "T") = 2)
    THEN logs ELSE With(table, "T")

Init ==
    /\ logs = [table \in Tables |-> <<>>]
    /\ intents = {} /\ record = "" /\ step = 1
    /\ base = -1 /\ attempt = -1
    /\ toldT = "" /\ toldW = "" /\ foreign = FALSE

--------------------------------------------------------------------------------
(* The transaction T. *)
Fails(outcome) ==
    /\ step' = Done /\ record' = outcome /\ toldT' = "failed"
    /\ UNCHANGED <<logs, intents, base, attempt, toldW, foreign>>

AbortsItself == Fails(IF record = "" THEN "aborted" ELSE record)

IsKilled == step # Done /\ step' = Done /\ UNCHANGED <<logs, intents, record, base, attempt, toldT, toldW, foreign>>

WritesIntent(table) ==
    /\ Steps[step] = <<"intent 0", "intent 1">>[table + 1]
    /\ intents' = intents \cup {table} /\ step' = step + 1
    /\ UNCHANGED <<logs, record, base, attempt, toldT, toldW, foreign>>

Starts(table) ==  \* by the commit loop of one table, which judges what was committed since T's snapshot, version 0
    /\ Steps[step] = <<"start 0", "start 1">>[table + 1]
    /\ IF PassedBy(table) THEN AbortsItself
       ELSE /\ logs' = With(table, "start") /\ step' = step + 1
            /\ UNCHANGED <<intents, record, base, attempt, toldT, toldW, foreign>>

Looks ==  \* for the last time for commits that passed it
    /\ step = Look
    /\ IF Off # "the last look" /\ (\E table \in Tables : PassedBy(table)) THEN AbortsItself
       ELSE step' = Decide /\ UNCHANGED <<logs, intents, record, base, attempt, toldT, toldW, foreign>>

Decides ==  \* by put-if-absent of the record
    /\ step = Decide
    /\ IF record # "" /\ Off # "put-if-absent of the record" THEN Fails(record)
       ELSE /\ record' = "committed" /\ toldT' = "committed" /\ step' = step + 1
            /\ UNCHANGED <<logs, intents, base, attempt, toldW, foreign>>

RollsForward(table) ==
    /\ Steps[step] = <<"roll 0", "roll 1">>[table + 1]
    /\ logs' = RolledForward(table) /\ step' = step + 1
    /\ UNCHANGED <<intents, record, base, attempt, toldT, toldW, foreign>>

Transaction ==
    \/ IsKilled \/ Looks \/ Decides
    \/ \E table \in Tables : WritesIntent(table) \/ Starts(table) \/ RollsForward(table)

--------------------------------------------------------------------------------
(* Helpers. Table 0 is the coordinator, which has the first intent. *)
HelperAborts ==
    /\ 0 \in intents /\ record = "" /\ record' = "aborted"
    /\ UNCHANGED <<logs, intents, step, base, attempt, toldT, toldW, foreign>>

HelperRolls(table) ==
    /\ table \in intents /\ record = "committed" /\ ~Has(logs[table], "T")
    /\ logs' = RolledForward(table)
    /\ UNCHANGED <<intents, record, step, base, attempt, toldT, toldW, foreign>>

HelperRemoves(table) ==
    /\ table \in intents
    /\ \/ record = "aborted"
       \/ record = "committed" /\ Has(logs[table], "T")
       \/ Off = "the record before intents go" /\ step = Done /\ record = ""
    /\ intents' = intents \ {table}
    /\ UNCHANGED <<logs, record, step, base, attempt, toldT, toldW, foreign>>

Helpers == HelperAborts \/ \E table \in Tables : HelperRolls(table) \/ HelperRemoves(table)

--------------------------------------------------------------------------------
(* The writer W. *)
Log == logs[Table]
IsOpen == Has(Log, "start") /\ ~Has(Log, "T") /\ record # "aborted"
UnchangedByW == UNCHANGED <<intents, record, step, toldT, foreign>>

WRecognises ==  \* whose the version is, after the answer was lost
    /\ attempt >= 0
    /\ IF /\ attempt < Len(Log) /\ Log[attempt + 1] = "W"
          /\ Off # "a look at whose the version is"
       THEN toldW' = "committed" /\ attempt' = -1 /\ UNCHANGED <<logs, base>>
       ELSE base' = -1 /\ attempt' = -1 /\ UNCHANGED <<logs, toldW>>

WReads ==
    /\ attempt < 0 /\ base < 0
    /\ ~IsOpen \/ Off = "waiting for starts"
    /\ base' = Len(Log) /\ UNCHANGED <<logs, attempt, toldW>>

WCollides ==
    /\ attempt < 0 /\ base >= 0 /\ base # Len(Log)
    /\ base' = -1 /\ UNCHANGED <<logs, attempt, toldW>>

WPuts ==
    /\ attempt < 0 /\ base >= 0 /\ base = Len(Log)
    /\ LET put == IF Count(Log, "W") < 2 THEN With(Table, "W") ELSE logs
       IN \/ logs' = put /\ toldW' = "committed" /\ UNCHANGED <<base, attempt>>
          \/ logs' = put /\ attempt' = base /\ UNCHANGED <<base, toldW>>
          \/ attempt' = base /\ UNCHANGED <<logs, base, toldW>>

Writer == toldW = "" /\ UnchangedByW /\ (WRecognises \/ WReads \/ WCollides \/ WPuts)

ForeignWriter ==
    /\ ~foreign /\ (~Conflicts \/ step <= Look) /\ record # "committed"
    /\ foreign' = TRUE /\ logs' = With(Table, "F")
    /\ UNCHANGED <<intents, record, step, base, attempt, toldT, toldW>>

Next == Transaction \/ Helpers \/ Writer \/ ForeignWriter
Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------
(* What holds in every state. *)
Shown(table) ==
    \/ Has(logs[table], "T")
    \/ Off # "the record for readers" /\ table \in intents /\ record = "committed"

NoCommitTwice == \A table \in Tables : \A name \in {"T", "W"} : Count(logs[table], name) <= 1
AllOrNothing == Shown(0) = Shown(1)
CallerOfTIsRight == toldT # "" => ((toldT = "committed") = Shown(0))
WriterIsNotLost == toldW = "committed" => Has(Log, "W")
NoConflictBetween ==
    Conflicts /\ Shown(0) => \A i \in DOMAIN Log : Log[i] \in {"W", "F"} => \E j \in 1..(i - 1) : Log[j] = "T"
NobodyWaitsForEver == ~ENABLED Next => intents = {} /\ toldW = "committed"
================================================================================
