package org.stagecoach;

import java.util.List;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

/** Spark's own tokens and plans of many texts in one call. Compiled by Janino. */
public final class SparkLexer {
  private final ParserInterface parser;

  public SparkLexer(Object parser) {
    this.parser = (ParserInterface) parser;
  }

  /** Tokens of texts, a line each: type, channel, first and last character, with ';' behind. */
  public String lex(String texts, String separator) {
    StringBuilder out = new StringBuilder();
    String[] each = texts.split(separator, -1);
    for (int i = 0; i < each.length; i++) {
      SqlBaseLexer lexer =
          new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(each[i])));
      lexer.removeErrorListeners();
      List tokens = lexer.getAllTokens();
      for (int k = 0; k < tokens.size(); k++) {
        Token token = (Token) tokens.get(k);
        out.append(SqlBaseLexer.VOCABULARY.getSymbolicName(token.getType())).append(' ')
            .append(token.getChannel()).append(' ').append(token.getStartIndex()).append(' ')
            .append(token.getStopIndex()).append(';');
      }
      out.append(lexer.has_unclosed_bracketed_comment ? "unclosed" : "").append('\n');
    }
    return out.toString();
  }

  /** Plans of texts as Spark parses them, without ids, or the class of the error. */
  public String parse(String texts, String separator) {
    StringBuilder out = new StringBuilder();
    String[] each = texts.split(separator, -1);
    for (int i = 0; i < each.length; i++) {
      String plan;
      try {
        plan = parser.parsePlan(each[i]).toString().replaceAll("#\\d+L?", "#");
      } catch (Throwable error) {
        plan = error.getClass().getSimpleName();
      }
      out.append(plan).append(separator);
    }
    return out.toString();
  }
}
