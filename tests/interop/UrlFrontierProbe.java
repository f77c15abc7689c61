// Talks to a frontier through the reference project's own Java stubs (urlfrontier-API 2.5), call by call.
import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.*;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.stub.StreamObserver;
import java.util.Iterator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

public class UrlFrontierProbe {
    public static void main(String[] args) throws Exception {
        ManagedChannel channel = ManagedChannelBuilder.forTarget(args[0]).usePlaintext().build();
        URLFrontierGrpc.URLFrontierBlockingStub frontier = URLFrontierGrpc.newBlockingStub(channel);
        System.out.println("acked " + put(URLFrontierGrpc.newStub(channel), Integer.parseInt(args[1])));
        Stats stats = frontier.getStats(QueueWithinCrawlParams.newBuilder().build());
        System.out.println("size " + stats.getSize() + " queues " + stats.getNumberOfQueues() + " " + stats.getCrawlID());
        System.out.println("got " + count(frontier.getURLs(
            GetParams.newBuilder().setMaxUrlsPerQueue(2).setMaxQueues(3).setDelayRequestable(600)
                .setAnyCrawlID(AnyCrawlID.newBuilder()).build())));
        System.out.println("held " + frontier.getStats(QueueWithinCrawlParams.newBuilder().build()).getInProcess());
        System.out.println("dumped " + count(frontier.listURLs(ListUrlParams.newBuilder().setSize(Integer.MAX_VALUE).build())));
        System.out.println("counted " + frontier.countURLs(CountUrlParams.newBuilder().setFilter("/1").build()).getValue());
        QueueList queues = frontier.listQueues(Pagination.newBuilder().setSize(10000).setIncludeInactive(true).build());
        System.out.println("queues " + queues.getValuesCount());
        String queue = queues.getValues(0);
        frontier.blockQueueUntil(BlockQueueParams.newBuilder().setKey(queue).setTime(4_000_000_000L).build());
        frontier.setDelay(QueueDelayParams.newBuilder().setKey(queue).setDelayRequestable(5).build());
        frontier.setCrawlLimit(CrawlLimitParams.newBuilder().setKey(queue).setLimit(7).build());
        frontier.setActive(Active.newBuilder().setState(true).build());
        frontier.setLogLevel(LogLevelParams.newBuilder().setPackage("x").build());
        System.out.println("active " + frontier.getActive(Local.newBuilder().build()).getState());
        System.out.println("crawls " + frontier.listCrawls(Local.newBuilder().build()).getValuesList());
        System.out.println("nodes " + frontier.listNodes(Empty.newBuilder().build()).getValuesCount());
        URLItem status = frontier.getURLStatus(URLStatusRequest.newBuilder().setUrl("http://h1.example/1").build());
        System.out.println("status " + status.hasKnown() + " " + (status.getKnown().getRefetchableFromDate() > 0));
        System.out.println("deleted " + frontier.deleteQueue(QueueWithinCrawlParams.newBuilder().setKey(queue).build()).getValue());
        System.out.println("rest " + frontier.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue("DEFAULT").build()).getValue());
        channel.shutdown().awaitTermination(5, TimeUnit.SECONDS);
    }

    private static int put(URLFrontierGrpc.URLFrontierStub frontier, int urls) throws InterruptedException {
        AtomicInteger acked = new AtomicInteger();
        CountDownLatch over = new CountDownLatch(1);
        StreamObserver<URLItem> items = frontier.putURLs(new StreamObserver<AckMessage>() {
            public void onNext(AckMessage ack) { if (ack.getStatus() == AckMessage.Status.OK) acked.incrementAndGet(); }
            public void onError(Throwable error) { error.printStackTrace(); over.countDown(); }
            public void onCompleted() { over.countDown(); }
        });
        for (int number = 0; number < urls; number++) {
            URLInfo info = URLInfo.newBuilder().setUrl("http://h" + number % 10 + ".example/" + number)
                .putMetadata("number", StringList.newBuilder().addValues("" + number).build()).build();
            items.onNext(URLItem.newBuilder().setID("" + number)
                .setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)).build());
        }
        items.onCompleted();
        over.await(60, TimeUnit.SECONDS);
        return acked.get();
    }

    private static int count(Iterator<?> answers) {
        int found = 0;
        while (answers.hasNext()) { answers.next(); found++; }
        return found;
    }
}
