// HDT: loads the versions in FOLDER, each whole (IC) or as changes (CB), and answers its queries:
// java -cp 'LIBRARIES/*' Hdt.java IC|CB FOLDER
import com.fasterxml.jackson.databind.*;
import java.io.File;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import org.rdfhdt.hdt.enums.RDFNotation;
import org.rdfhdt.hdt.hdt.*;
import org.rdfhdt.hdt.options.HDTSpecification;

public class Hdt {
    static List<HDT> added = new ArrayList<>(), removed = new ArrayList<>();
    static boolean whole;

    static HDT load(Path folder, String name, Collection<String> lines) throws Exception {
        Path text = folder.resolve("lines"), path = folder.resolve("store").resolve(name + ".hdt");
        Files.write(text, lines);
        try (HDT made = HDTManager.generateHDT(text.toString(), "urn:base", RDFNotation.NTRIPLES, new HDTSpecification(), null)) {
            made.saveToHDT(path.toString(), null);
        }
        return HDTManager.mapIndexedHDT(path.toString(), null);
    }

    static String longer(CharSequence term) {
        return term.charAt(0) == '"' ? term.toString() : "<" + term + ">";
    }

    static Set<String> find(HDT hdt, String predicate, String value) throws Exception {
        Set<String> found = new HashSet<>();
        if (hdt != null)
            hdt.search("", predicate, value).forEachRemaining(each -> found.add(
                longer(each.getSubject()) + " " + longer(each.getPredicate()) + " " + longer(each.getObject()) + " ."));
        return found;
    }

    /** The statements of each version up to one, for changes; of that version only where each is whole. */
    static List<Set<String>> versions(String predicate, String value, int last, boolean all) throws Exception {
        List<Set<String>> found = new ArrayList<>();
        Set<String> held = new HashSet<>();
        for (int i = whole && !all ? last : 0; i <= last; i++) {
            if (whole) held = new HashSet<>();
            held.removeAll(find(removed.get(i), predicate, value));
            held.addAll(find(added.get(i), predicate, value));
            found.add(all ? new HashSet<>(held) : held);
        }
        return found;
    }

    public static void main(String[] words) throws Exception {
        Path folder = Path.of(words[1]);
        whole = words[0].equals("IC");
        ObjectMapper json = new ObjectMapper();
        Files.createDirectory(folder.resolve("store"));
        long began = System.nanoTime();
        Set<String> before = new HashSet<>();
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(each -> each.toString().endsWith(".nt")).sorted().toList();
        }
        for (Path file : files) {
            Set<String> now = new LinkedHashSet<>(Files.readAllLines(file)), come = new LinkedHashSet<>(now), gone = new HashSet<>(before);
            if (!whole) come.removeAll(before);
            gone.removeAll(now);
            added.add(load(folder, added.size() + "+", come));
            removed.add(whole || gone.isEmpty() ? null : load(folder, removed.size() + "-", gone));
            before = now;
        }
        Map<String, List<Object>> times = new HashMap<>(), answers = new HashMap<>();
        for (String kind : List.of("VM", "DM", "VQ")) { times.put(kind, new ArrayList<>()); answers.put(kind, new ArrayList<>()); }
        double load = (System.nanoTime() - began) / 1e9;
        for (JsonNode each : json.readTree(folder.resolve("queries.json").toFile())) {
            String predicate = each.get(0).asText().replaceAll("[<>]", ""), value = each.get(1).isNull() ? "" : each.get(1).asText();
            if (value.startsWith("<")) value = value.substring(1, value.length() - 1);
            int old = each.get(2).asInt(), now = each.get(3).asInt();
            for (String kind : times.keySet()) {
                long start = System.nanoTime();
                Collection<String> found = new ArrayList<>();
                if (kind.equals("VM")) found = versions(predicate, value, old, false).get(whole ? 0 : old);
                else if (kind.equals("DM")) {
                    Set<String> was = new HashSet<>(versions(predicate, value, old, false).get(whole ? 0 : old));
                    Set<String> is = versions(predicate, value, now, false).get(whole ? 0 : now);
                    for (String line : is) if (!was.contains(line)) found.add("+" + line);
                    for (String line : was) if (!is.contains(line)) found.add("-" + line);
                } else {
                    Map<String, StringJoiner> held = new HashMap<>();
                    int number = 0;
                    for (Set<String> state : versions(predicate, value, files.size() - 1, true)) {
                        for (String line : state) held.computeIfAbsent(line, key -> new StringJoiner(" ")).add("" + number);
                        number++;
                    }
                    for (var entry : held.entrySet()) found.add(entry.getKey() + entry.getValue());
                }
                times.get(kind).add((System.nanoTime() - start) / 1e9);
                answers.get(kind).add(found);
            }
        }
        json.writeValue(folder.resolve("result.json").toFile(), Map.of("load", load, "times", times, "answers", answers));
    }
}
