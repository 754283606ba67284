#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The origin once sent another ETag for the same bytes, as origins with a bucket
# did, and the cache of an edge still has parts of a xorb with that ETag.  With
# conf/edge.conf, cached and fetched parts form one response.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;

my $origin = Test::Xet->new(workers => 1, log => 'info');
my $between = Test::Xet->new(pg => 0, xet => 0, allow => [ qr/upstream/ ]);

# Returns the upstream of the edge: the origin itself, or with its old ETag.

sub between {
	my ($before) = @_;

	my $more = $before ? <<'EOC' : '';
            proxy_hide_header ETag;
            add_header ETag '"of-the-store"' always;
EOC

	$between->write_conf(<<"EOC");
%%MAIN%%

events {
}

http {
    %%HTTP%%

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location / {
            proxy_pass @{[ $origin->url('') ]};
            proxy_set_header Host \$http_host;
            proxy_http_version 1.1;
$more
        }
    }
}
EOC
}

my $edge = Test::Xet::Edge::edge($origin);
my $conf = $edge->dir() . '/nginx.conf';
my ($from, $to) = map { '127.0.0.1:' . $_->port() } $origin, $between;

spew($conf, slurp($conf) =~ s/\Q$from\E/$to/r);
Test::Xet::Edge::base($origin, $edge);
between(1);

$_->run() for $origin, $between, $edge;
$edge->allow(qr/upstream|unexpected status code/);

my $file = $origin->upload(mix(1, 24_000_000));
my $info = $origin->get("/api/v1/reconstructions/$file->{hash}")->json()
	->{fetch_info};
my ($entry) = sort { $b->{url_range}{end} <=> $a->{url_range}{end} }
	map { @$_ } values %$info;
my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
my ($name) = $path =~ m!/(\w{64}\.\w{8})\?!;
my %range = (Range => "bytes=0-$entry->{url_range}{end}");

is(length($edge->get($path, { Range => 'bytes=0-8388607' })->{body}), 8 << 20,
	'two old slices are cached');

between(0);
$between->reload();

my $r = $edge->get($path, \%range);

is($r->{status}, 206, 'new: status');
ok($r->{body} eq substr(slurp($origin->xorb_file($name =~ s/\..*//r)), 0,
	$entry->{url_range}{end} + 1), 'new: complete');
is($r->header_value('ETag'), "\"$name\"", 'new: the ETag is the name');

for ($edge, $between, $origin) {
	$_->check();
	$_->remove();
}

done_testing();
