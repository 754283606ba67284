package Test::Xet::Edge;

# Copyright (C) the ngx_http_xet_module authors

# Runs an edge server with conf/edge.conf unchanged, in its own folder, for an
# origin of the test.
#
#     my $edge = Test::Xet::Edge::edge($origin, http => '...');
#
# http adds lines at the http level.  To make the origin's URLs point to the
# edge:
#
#     Test::Xet::Edge::base($origin, $edge);

use warnings;
use strict;

use JSON::PP ();

use Test::Xet;
use Test::Xet::Process qw/ root slurp /;

sub edge {
	my ($origin, %o) = @_;

	my $edge = Test::Xet->new(pg => 0, xet => 0, log => 'info',
		timeout => $o{timeout});
	my $conf = slurp(root() . '/conf/edge.conf');
	my $dir = $edge->dir();
	my @user = Test::Xet::Nginx::user();
	my $module = Test::Xet::Nginx::module();
	my $load = $module eq '' ? '' : "load_module $module;";
	my $to = $origin->port();
	my $more = $o{http} // '';

	for ($conf) {
		s!load_module \S+;!$load daemon off;! or die;
		s!user www-data;!@user ? "user @user;" : ''!e or die;
		s!/etc/nginx/xet/url\.key!$origin->dir() . '/url.key'!e or die;
		s!/run/nginx\.pid!$dir/nginx.pid! or die;
		s!worker_processes auto;!worker_processes 1;! or die;
		s!error_log \S+;!error_log $dir/error.log info;! or die;
		s!access_log \S+ edge;!access_log $dir/access.log;! or die;
		s!/var/cache/nginx/xet!$dir/cache! or die;
		s!server 127\.0\.0\.1:8081;!server 127.0.0.1:$to;! or die;
		s!listen 127\.0\.0\.1:8080;!listen 127.0.0.1:%%PORT_8080%%;!
			or die;
		s!(http \{)!$1\n    client_body_temp_path $dir/b;
    proxy_temp_path $dir/p; fastcgi_temp_path $dir/f;
    uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
    $more!;
	}

	$edge->write_conf($conf);

	return $edge;
}

sub base {
	my ($origin, $edge) = @_;

	$origin->write_conf(undef,
		directives => { xet_url_base => $edge->url('') });
}

# Uploads a file; returns a URL with several ranges of it, and these ranges.
# The origin needs an API at /several that returns such URLs.

sub several {
	my ($origin) = @_;

	my $data = random_bytes(20, 600000);
	my $xorb = make_xorb($data, scheme => 'none', sizes => [ 20000 ]);
	my $shard = make_shard({ xorbs => [ $xorb ], files => [ {
		verification => JSON::PP::true,
		terms => [ map { { xorb => $xorb->{hash}, start => $_,
			end => $_ + 1 } } 8, 4, 0 ] } ] });

	for ([ "/api/v1/xorbs/default/$xorb->{hash}", $xorb->{bytes} ],
		[ '/api/v1/shards', $shard->{bytes} ])
	{
		my $r = $origin->post($_->[0], \$_->[1]);
		die "$_->[0]: $r->{status}\n" if $r->{status} != 200;
	}

	my ($entry) = @{ $origin->get('/several/v2/reconstructions/'
		. $shard->{files}[0]{hash})->json()->{xorbs}{$xorb->{hash}} };

	return $entry->{url} =~ s!^http://[^/]+!!r,
		map { "$_->{bytes}{start}-$_->{bytes}{end}" }
			@{ $entry->{ranges} };
}

1;
