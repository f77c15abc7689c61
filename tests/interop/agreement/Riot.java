// Reads many files with Jena's RIOT in one process: each line of standard input is "file<TAB>language<TAB>base<TAB>output".
// Answers each with "ok" or the first error; the statements up to there are in the output, as N-Quads.
import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.jena.riot.*;
import org.apache.jena.riot.lang.LabelToNode;
import org.apache.jena.riot.system.*;

public class Riot {
    public static void main(String[] args) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] task = line.split("\t");
            System.out.println(read(task[0], task[1], task[2], task[3]));
            System.out.flush();
        }
    }

    static String read(String file, String language, String base, String output) {
        try (OutputStream out = new BufferedOutputStream(new FileOutputStream(output))) {
            StreamRDF sink = StreamRDFWriter.getWriterStream(out, Lang.NQUADS);
            try {
                RDFParser.source(file).lang(RDFLanguages.nameToLang(language)).forceLang(RDFLanguages.nameToLang(language))
                    .base(base).labelToNode(LabelToNode.createUseLabelAsGiven())
                    .errorHandler(ErrorHandlerFactory.errorHandlerStrictNoLogging).parse(sink);
                return "ok";
            } catch (Throwable error) {
                return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
            } finally {
                sink.finish();
            }
        } catch (IOException error) {
            return "cannot write: " + error.getMessage();
        }
    }
}
