package Test::Xet::Repo;

# Copyright (C) the ngx_http_xet_module authors

# Creates repos of models by the API of a Hub, and commits small files:
#
#     create_repo($t, { organization => 'team', name => 'model' });
#     commit_files($t, 'team/model', 'first', { 'a.txt' => "a\n" }, $headers);
#
# $headers are additional headers, such as a token.

use warnings;
use strict;

use parent 'Exporter';

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Test::More;

our @EXPORT = qw/ create_repo commit_files /;

my $json = JSON::PP->new()->utf8();

sub create_repo {
	my ($t, $repo, $headers) = @_;

	is($t->post('/api/repos/create', \$json->encode($repo), {
		%{ $headers // {} }, 'Content-Type' => 'application/json'
		})->{status}, 200, "create $repo->{name}");
}

sub commit_files {
	my ($t, $name, $title, $files, $headers) = @_;

	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => $title } },
		map { { key => 'file', value => { path => $_,
			encoding => 'base64',
			content => encode_base64($files->{$_}, '') } } }
			sort keys %$files);

	is($t->post("/api/models/$name/commit/main", \$body, {
		%{ $headers // {} }, 'Content-Type' => 'application/x-ndjson'
		})->{status}, 200, "commit $title");
}

1;
