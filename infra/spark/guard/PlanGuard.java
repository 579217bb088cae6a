package org.stagecoach;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;

/**
 * Decides whether a plan that Spark made of a SQL text does nothing but read tables.
 *
 * Every node of a plan, wherever it hangs, must be of a class that is on a list. Compiled by Janino,
 * which Spark brings along and which knows neither generics nor lambdas.
 */
public final class PlanGuard {
  /** How the message of a refusal begins; clients of a server look for it. */
  public static final String REFUSAL = "Stagecoach refuses the query: its plan ";

  private static final java.util.List NOTHING = new java.util.ArrayList();

  private static final String[] OWN_CODE = {
    "org.apache.spark.sql.catalyst.", "org.apache.spark.unsafe."
  };

  private final Set allowed;
  private final Set allowedInDataFrames;
  private final Set tableFunctions;
  private final Set forbiddenFunctions;

  /**
   * Takes names in texts, one a line: of classes, of classes that only data frames may have, of
   * table functions, of functions.
   */
  public PlanGuard(
      String allowed, String ofDataFrames, String tableFunctions, String forbiddenFunctions) {
    this.allowed = new HashSet(Arrays.asList(allowed.split("\n")));
    this.allowedInDataFrames = new HashSet(this.allowed);
    this.allowedInDataFrames.addAll(Arrays.asList(ofDataFrames.split("\n")));
    this.tableFunctions = new HashSet(Arrays.asList(tableFunctions.split("\n")));
    this.forbiddenFunctions = new HashSet(Arrays.asList(forbiddenFunctions.split("\n")));
  }

  /**
   * Says what a parsed plan does besides reading temporary views of a session and calling functions
   * of a list by their names, in lower case; null if nothing.
   */
  public String checkParsed(Object plan, SparkSession session, java.util.List names) {
    return new Walk(session, allowed, NOTHING, names).run(plan);
  }

  /**
   * Says what an analysed plan does besides reading temporary views and calling the Python functions
   * of a list, which are compared by identity; null if nothing.
   */
  public String checkAnalyzed(Object plan, java.util.List functions) {
    return new Walk(null, allowed, functions, NOTHING).run(plan);
  }

  /**
   * Has every session that is made with these extensions refuse SQL texts whose plans do more.
   *
   * A text is checked as soon as it is parsed. Plans are checked once more when they are analysed;
   * there, those of data frames, which clients build without SQL, may have some nodes besides.
   */
  public void install(SparkSessionExtensions extensions) {
    extensions.injectParser(new scala.runtime.AbstractFunction2() {
      public Object apply(Object session, Object parser) {
        return guarded((SparkSession) session, parser);
      }
    });
    extensions.injectCheckRule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) {
        return new scala.runtime.AbstractFunction1() {
          public Object apply(Object plan) {
            refuse(new Walk(null, allowedInDataFrames, NOTHING, NOTHING).run(plan));
            return scala.runtime.BoxedUnit.UNIT;
          }
        };
      }
    });
  }

  private Object guarded(final SparkSession session, final Object parser) {
    return Proxy.newProxyInstance(
        ParserInterface.class.getClassLoader(),
        new Class[] {ParserInterface.class},
        new InvocationHandler() {
          public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            Object made;
            try {
              made = method.invoke(parser, arguments);
            } catch (InvocationTargetException error) {
              throw error.getCause();
            }
            if (made instanceof TreeNode) {
              // Its client registers what a text may call; the text itself cannot.
              refuse(checkParsed(made, session, null));
            }
            return made;
          }
        });
  }

  private static void refuse(String found) {
    if (found != null) {
      throw new SecurityException(REFUSAL + found);
    }
  }

  private final class Walk {
    private final SparkSession session;
    private final Set classes;
    private final java.util.List functions;
    private final java.util.List names;
    private final ArrayDeque todo = new ArrayDeque();
    private final IdentityHashMap seen = new IdentityHashMap();
    private final Set commonTables = new HashSet();
    private final Set relations = new HashSet();

    Walk(SparkSession session, Set classes, java.util.List functions, java.util.List names) {
      this.session = session;
      this.classes = classes;
      this.functions = functions;
      this.names = names;
    }

    String run(Object root) {
      add(root);
      while (!todo.isEmpty()) {
        String found = visit(todo.pop());
        if (found != null) {
          return found;
        }
      }
      java.util.Iterator names = relations.iterator();
      while (names.hasNext()) {
        String name = (String) names.next();
        if (!commonTables.contains(name) && !isView(name)) {
          return "reads '" + name + "', which is not a table of the catalog";
        }
      }
      return null;
    }

    private void add(Object value) {
      if (value != null && seen.put(value, Boolean.TRUE) == null) {
        todo.push(value);
      }
    }

    private void addAll(scala.collection.Iterator values) {
      while (values.hasNext()) {
        add(values.next());
      }
    }

    private String visit(Object value) {
      if (value instanceof DataType) {
        return null;
      }
      if (value instanceof TreeNode) {
        return visitNode((TreeNode) value);
      }
      if (value instanceof String) {
        return "rowValidationXSDPath".equalsIgnoreCase((String) value)
            ? "opens a file by the option 'rowValidationXSDPath'" : null;
      }
      if (value instanceof scala.collection.IterableOnce) {
        addAll(((scala.collection.IterableOnce) value).iterator());
      } else if (value instanceof scala.Product) {
        addAll(((scala.Product) value).productIterator());
      }
      return null;
    }

    private String visitNode(TreeNode node) {
      String name = node.getClass().getName();
      if (!classes.contains(name) && !isOurs(node)) {
        return "has a " + node.getClass().getSimpleName();
      }
      if (node instanceof View) {
        // What is below one of ours was made by this program.
        return ((View) node).isTempView() ? null : "reads a view of Spark's catalog";
      }
      String found = visitReference(node);
      if (found != null) {
        return found;
      }
      if (node instanceof UnresolvedWith) {
        scala.collection.Iterator pairs = ((UnresolvedWith) node).cteRelations().iterator();
        while (pairs.hasNext()) {
          Object first = ((scala.Product) pairs.next()).productElement(0);
          commonTables.add(((String) first).toLowerCase(Locale.ROOT));
        }
      }
      if (node instanceof scala.Product) {
        addAll(((scala.Product) node).productIterator());
      }
      addAll(node.children().iterator());
      addAll(node.innerChildren().iterator());
      return null;
    }

    private String visitReference(TreeNode node) {
      if (node instanceof UnresolvedRelation) {
        UnresolvedRelation relation = (UnresolvedRelation) node;
        String name = relation.multipartIdentifier().mkString(".");
        if (relation.isStreaming() || relation.multipartIdentifier().size() != 1
            || !relation.options().isEmpty()) {
          return "reads '" + name + "', which is not a table of the catalog";
        }
        relations.add(name.toLowerCase(Locale.ROOT));
      } else if (node instanceof UnresolvedTableValuedFunction) {
        String name = ((UnresolvedTableValuedFunction) node).name().mkString(".");
        if (!tableFunctions.contains(name.toLowerCase(Locale.ROOT))) {
          return "calls the table function '" + name + "'";
        }
      } else if (node instanceof UnresolvedFunction) {
        scala.collection.immutable.Seq parts = ((UnresolvedFunction) node).nameParts();
        String name = ((String) parts.last()).toLowerCase(Locale.ROOT);
        boolean builtin = FunctionRegistry$.MODULE$.builtin()
            .functionExists(new FunctionIdentifier(name));
        boolean allowed = builtin || parts.size() == 1 && isDeclared(name);
        if (!allowed || forbiddenFunctions.contains(name)) {
          return "calls the function '" + parts.mkString(".") + "'";
        }
      } else if (node instanceof StaticInvoke) {
        return visitCalled(((StaticInvoke) node).staticObject());
      } else if (node instanceof Invoke) {
        DataType target = ((Invoke) node).targetObject().dataType();
        return target instanceof ObjectType ? visitCalled(((ObjectType) target).cls()) : null;
      }
      return null;
    }

    private String visitCalled(Class called) {
      for (int i = 0; i < OWN_CODE.length; i++) {
        if (called.getName().startsWith(OWN_CODE[i])) {
          return null;
        }
      }
      return "calls a method of " + called.getName();
    }

    /** Whether the node calls one of the Python functions that the caller has registered. */
    private boolean isOurs(TreeNode node) {
      if (node instanceof PythonUDF) {
        for (int i = 0; i < functions.size(); i++) {
          if (functions.get(i) == ((PythonUDF) node).func()) {
            return true;
          }
        }
      }
      return false;
    }

    /**
     * Whether a function is one of the list, or, without a list, whether a program has registered a
     * Python function of that name in the session.
     */
    private boolean isDeclared(String name) {
      if (names != null) {
        return names.contains(name);
      }
      scala.Option found = session.sessionState().catalog().lookupBuiltinOrTempFunction(name);
      return found.isDefined() && "python_udf".equals(((ExpressionInfo) found.get()).getSource());
    }

    private boolean isView(String name) {
      return session.sessionState().catalog().getRawTempView(name).isDefined();
    }
  }
}
