<?php
// Sample content for a WordPress that was just installed: an author, posts of invented text, comments, a post with a
// password. Run by PHP's command line in the site's folder; the one argument is the name that browsers use.

$_SERVER['HTTP_HOST']   = $argv[1];
$_SERVER['REQUEST_URI'] = '/';
require __DIR__ . '/site/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

const SYLLABLES = array( 'lar', 'der', 'pan', 'tri', 'sto', 'rel', 'cel', 'mil', 'bro', 'chee', 'hon', 'jam', 'loaf', 'pick', 'salt' );

// The same sentences in every run.
function sentences( int $seed, int $count ): string {
	$state = $seed * 7919 + 17;
	$next  = function ( int $below ) use ( &$state ): int {
		$state = ( $state * 1103515245 + 12345 ) % 2147483648;
		return intdiv( $state, 65536 ) % $below;
	};
	$text  = array();
	for ( $sentence = 0; $sentence < $count; $sentence++ ) {
		$words = array();
		for ( $word = 6 + $next( 9 ); $word > 0; $word-- ) {
			$name = '';
			for ( $part = 1 + $next( 3 ); $part > 0; $part-- ) {
				$name .= SYLLABLES[ $next( count( SYLLABLES ) ) ];
			}
			$words[] = $name;
		}
		$text[] = ucfirst( implode( ' ', $words ) ) . '.';
	}
	return implode( ' ', $text );
}

function made( $id ): int {
	if ( is_wp_error( $id ) ) {
		fwrite( STDERR, $id->get_error_message() . "\n" );
		exit( 1 );
	}
	return (int) $id;
}

$wp_rewrite->set_permalink_structure( '/%postname%/' );
flush_rewrite_rules( false );
// So many make the front page as long as the one of the published figures.
update_option( 'posts_per_page', 6 );
// Mails about comments look up the name of the commenter's address, and nobody answers that here.
update_option( 'comments_notify', 0 );
update_option( 'moderation_notify', 0 );

$author = made(
	wp_insert_user(
		array(
			'user_login'   => 'author',
			'user_pass'    => 'author-of-this-run',
			'user_email'   => 'author@site.example',
			'display_name' => 'Annabel Author',
			'role'         => 'author',
		)
	)
);

function post( string $title, int $seed, int $author, array $more = array() ): int {
	$paragraphs = '';
	for ( $paragraph = 0; $paragraph < 8; $paragraph++ ) {
		$text        = sentences( $seed * 100 + $paragraph, 5 );
		$paragraphs .= "<!-- wp:paragraph -->\n<p>$text</p>\n<!-- /wp:paragraph -->\n\n";
	}
	$post = array(
		'post_title'   => $title,
		'post_name'    => sanitize_title( $title ),
		'post_content' => $paragraphs,
		'post_author'  => $author,
		'post_status'  => 'publish',
		'post_date'    => gmdate( 'Y-m-d H:i:s', time() - 86400 - 3600 * $seed ),
	);
	return made( wp_insert_post( array_merge( $post, $more ), true ) );
}

// The welcome post stands apart from the rest.
wp_delete_post( 1, true );
for ( $number = 1; $number <= 12; $number++ ) {
	post( "Shelf number $number", $number, $number % 2 ? 1 : $author );
}
$discussed = post( 'The discussed shelf', 20, $author );
post(
	'The locked shelf',
	21,
	$author,
	array(
		'post_password' => 'open-sesame',
		'post_content'  => "<!-- wp:paragraph -->\n<p>What lies behind the lock.</p>\n<!-- /wp:paragraph -->",
	)
);
// Readers of whom a comment was approved: their next one shows without being looked at.
for ( $number = 1; $number <= 4; $number++ ) {
	made(
		wp_insert_comment(
			array(
				'comment_post_ID'      => $discussed,
				'comment_author'       => "Known Reader $number",
				'comment_author_email' => "known-$number@reader.example",
				'comment_author_IP'    => '192.0.2.1',
				'comment_content'      => sentences( 500 + $number, 3 ),
				'comment_approved'     => 1,
				'comment_date'         => gmdate( 'Y-m-d H:i:s', time() - 3600 ),
				'comment_date_gmt'     => gmdate( 'Y-m-d H:i:s', time() - 3600 ),
			)
		)
	);
}
